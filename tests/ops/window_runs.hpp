#pragma once
/// Attention over short windows as tests of worked numbers and properties call it: arrays in, arrays out, on any
/// device.

#include <algorithm>
#include <array>
#include <cmath>

#include "autograd/functions/window_attention_additive.hpp"
#include "autograd/functions/window_attention_dot.hpp"
#include "autograd/tape.hpp"
#include "tests/harness/array_difference.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/each_device.hpp"
#include "tests/reference/basic_ops.hpp"

namespace engram::harness {

struct WindowRun {
  Array64 context, weights;
  std::vector<Array64> gradients;  ///< of the arguments but the last, for the cotangent
};

/// Where and how a call runs.
struct WindowCall {
  Backend* backend = nullptr;
  DType dtype = DType::f64;
  double tolerance = 1e-14;  ///< of the results, relative
};

/// Of this run of the test case, which is repeated for every device in f32 and f64.
inline WindowCall each_window_call() {
  const bool single = GENERATE(false, true);
  return {&each_device(), single ? DType::f32 : DType::f64, single ? 1e-6 : 1e-14};
}

/// `preceding` of positions that follow each other, and the `carried` rows before them.
inline Array64 positions_of_one_article(std::int64_t streams, std::int64_t carried, std::int64_t block) {
  Array64 preceding = reference::zeros({streams, block});
  for (std::int64_t b = 0; b < streams; ++b)
    for (std::int64_t t = 0; t < block; ++t) preceding.at(b, t) = static_cast<double>(carried + t);
  return preceding;
}
/// [B, begin to before end, ...]
inline Array64 positions_of(const Array64& x, std::int64_t begin, std::int64_t end) {
  return reference::slice(x, 1, begin, end);
}

inline void check_same(const Array64& got, const Array64& wanted, double tolerance) {
  for (const std::string& fault : compare_elements("result", std::array{got}, std::array{wanted}, tolerance))
    FAIL_CHECK(fault);
}
inline bool all_zero(const Array64& x) {
  return std::ranges::all_of(x.data, [](double value) { return value == 0; });
}
inline bool all_finite(const Array64& x) {
  return std::ranges::all_of(x.data, [](double value) { return std::isfinite(value); });
}

/// Calls function(variables, preceding) and its backward pass, with `cotangent` of the context. x: the arguments, those
/// not given being absent, then `preceding`.
template <class Attention>
WindowRun run_window(const WindowCall& call, const std::vector<Array64>& x, const Array64& cotangent,
                     Attention&& function) {
  GuardedAllocator memory(*call.backend);
  Step step(*call.backend, memory);
  Tape tape(step);
  const auto upload = [&](const Array64& numbers, bool integer) {
    Input input = values(Shape(std::span<const std::int64_t>(numbers.shape)), {});
    input.integer = integer;
    return to_device(*call.backend, memory, numbers, input, call.dtype);
  };
  std::vector<Variable> variables;
  for (std::size_t i = 0; i + 1 < x.size(); ++i)
    variables.push_back(x[i].given() ? tape.leaf(upload(x[i], false)) : Variable{});
  const WindowedResult result = function(std::span<const Variable>(variables), upload(x.back(), true));
  WindowRun run{to_host(*call.backend, result.context.value()), to_host(*call.backend, result.weights), {}};
  tape.backward(result.context, upload(cotangent, false));
  for (const Variable& variable : variables)
    run.gradients.push_back(variable ? to_host(*call.backend, tape.gradient(variable)) : Array64{});
  return run;
}

}  // namespace engram::harness
