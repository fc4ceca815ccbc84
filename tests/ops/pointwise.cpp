#include "autograd/functions/pointwise.hpp"

#include <cmath>
#include <limits>

#include "core/kernels/pointwise.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/op_run.hpp"
#include "tests/harness/op_table.hpp"
#include "tests/reference/basic_ops.hpp"

namespace engram::harness::pointwise_test {
namespace {

// Away from 0 for relu's corner, and wide enough for the tails.
const std::vector<std::vector<Input>> kInputs{
    {normal({3, 7})}, {normal({1})}, {uniform({16411}, -12, 12)}, {values({3}, {-30, 40, 0.25})}};

template <class Call, class Plain>
OpCase activation(const char* name, Call call, Plain plain, double bf16) {
  return {.name = name,
          .inputs = kInputs,
          .function = [call](std::span<const Variable> x) { return call(x[0]); },
          .reference = [plain](std::span<const Array64> x) { return plain(x[0]); },
          .tolerance = {.f32 = 1e-5, .bf16 = bf16}};  // 1 - y * y of tanh has lost a digit where y is near 1
}

const OpCases cases{
    activation("relu", relu, reference::relu, kMoved),
    activation("gelu", gelu, reference::gelu, kRounding),
    activation("tanh", tanh, reference::tanh, 20 * kRounding),  // y is rounded first: hardly a digit is left there
    activation("sigmoid", sigmoid, reference::sigmoid, 4 * kRounding),
    activation("silu", silu, reference::silu, 2 * kRounding),
};

/// The kernel's values of x in one dtype.
template <class F, class T>
std::vector<double> values_of(const std::vector<double>& x) {
  Backend& backend = *available_backends().front();
  GuardedAllocator memory(backend);
  Step step(backend, memory);
  const auto count = static_cast<std::int64_t>(x.size());
  const Tensor input = to_device(backend, memory, Array64{{count}, x}, values({count}, x), dtype_of<T>);
  Tensor output = step.empty({count}, dtype_of<T>);
  kernels::pointwise_forward<F>(step, input, output);
  return to_host(backend, output).data;
}

TEST_CASE("activations at the ends of the number line", "[ops]") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> ends{-infinity, -1000, -0.0, 0, 1000, infinity};
  CHECK(values_of<Relu, float>(ends) == std::vector<double>{0, 0, 0, 0, 1000, infinity});
  const std::vector<double> tanhs = values_of<Tanh, float>(ends);
  for (const std::size_t i : {0, 1, 2, 3, 4, 5}) {
    const double limit = i < 2 ? -1 : i < 4 ? 0 : 1;
    // Eigen's for aarch64 stops 4 roundings before -1; nothing may go beyond.
    CHECK(std::abs(tanhs[i] - limit) <= 2.5e-7);
    CHECK(std::abs(tanhs[i]) <= std::abs(limit));
  }
  CHECK(values_of<Tanh, double>(ends) == std::vector<double>{-1, -1, 0, 0, 1, 1});
  for (const std::vector<double>& sigmoids : {values_of<Sigmoid, float>(ends), values_of<Sigmoid, double>(ends)}) {
    for (const int small : {0, 1}) CHECK((sigmoids[small] >= 0 && sigmoids[small] < 1e-37));
    CHECK(sigmoids[2] == 0.5);
    CHECK(sigmoids[3] == 0.5);
    CHECK(sigmoids[4] == 1);
    CHECK(sigmoids[5] == 1);
  }
}

TEST_CASE("vectorised tanh and sigmoid are exact to a few units in the last place", "[ops]") {
  std::vector<double> x;
  for (int i = -4000; i <= 4000; ++i) x.push_back(static_cast<float>(i / 401.0));
  const std::vector<double> tanh_f32 = values_of<Tanh, float>(x), sigmoid_f32 = values_of<Sigmoid, float>(x);
  const std::vector<double> tanh_f64 = values_of<Tanh, double>(x), sigmoid_f64 = values_of<Sigmoid, double>(x);
  double worst_f32 = 0, worst_f64 = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double t = std::tanh(x[i]), s = 1 / (1 + std::exp(-x[i]));
    const double size = std::max(std::abs(t), 1e-30);
    worst_f32 = std::max({worst_f32, std::abs(tanh_f32[i] - t) / size, std::abs(sigmoid_f32[i] - s) / s});
    worst_f64 = std::max({worst_f64, std::abs(tanh_f64[i] - t) / size, std::abs(sigmoid_f64[i] - s) / s});
  }
  CHECK(worst_f32 < 6e-7);
  CHECK(worst_f64 < 1e-15);
}

}  // namespace
}  // namespace engram::harness::pointwise_test
