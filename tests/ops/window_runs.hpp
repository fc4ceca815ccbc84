#pragma once
/// Attention over short windows as tests of worked numbers and properties call it: arrays in, arrays out, on any
/// device.

#include "autograd/functions/window_attention_additive.hpp"
#include "autograd/tape.hpp"
#include "tests/harness/op_run.hpp"

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

/// x: keys, queries, score vector, values, preceding.
inline WindowRun run_additive(const WindowCall& call, const std::vector<Array64>& x, const Array64& cotangent,
                              const AdditiveWindow& options) {
  return run_window(call, x, cotangent, [&](std::span<const Variable> v, const Tensor& preceding) {
    return window_attention_additive(v[0], v[1], v[2], v[3], preceding, options);
  });
}

}  // namespace engram::harness
