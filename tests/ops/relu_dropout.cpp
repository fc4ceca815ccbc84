#include "autograd/functions/relu_dropout.hpp"

#include <cmath>
#include <limits>

#include "autograd/functions/add_bias.hpp"
#include "autograd/functions/dropout.hpp"
#include "autograd/functions/pointwise.hpp"
#include "autograd/tape.hpp"
#include "core/kernels/relu_dropout.hpp"
#include "tests/harness/each_device.hpp"
#include "tests/harness/op_run.hpp"
#include "tests/harness/op_table.hpp"
#include "tests/reference/basic_ops.hpp"

namespace engram::harness::relu_dropout_test {
namespace {

Array64 dropped_relu(const Array64& x, const Array64& bias, double rate) {
  Array64 y = reference::relu(reference::add_bias(x, bias));
  const DropoutRule rule(rate);
  const RandomStream random = random_stream(0);
  for (std::size_t i = 0; i < y.data.size(); ++i) {
    const PhiloxBlock block = random.draw(i / DropoutRule::kElementsPerBlock);
    y.data[i] *= rule.keeps(block, static_cast<int>(i % DropoutRule::kElementsPerBlock)) ? rule.multiplier : 0;
  }
  return y;
}

BadCall refused(double rate, const char* shown) {
  return {.inputs = {normal({2, 3}), normal({3})},
          .contains = {"relu_dropout", "[0, 1 - 2^-17)", shown},
          .function = [rate](std::span<const Variable> x) { return relu_dropout(x[0], x[1], rate); }};
}

const OpCases cases{
    OpCase{.name = "relu_dropout",
           .inputs = {{normal({3, 7}), normal({7})},
                      {normal({2, 3, 16}), normal({16})},
                      {normal({1}), normal({1})},
                      {normal({5, 2056}), normal({2056})},
                      {normal({3, 1031}), normal({1031})}},
           .function = [](std::span<const Variable> x) { return relu_dropout(x[0], x[1], 0.3); },
           .reference = [](std::span<const Array64> x) { return dropped_relu(x[0], x[1], 0.3); },
           .tolerance = {.bf16 = 2 * kRounding},
           .roles = {Role::activation, Role::vector},
           .dropout = true,
           .errors = {refused(1, "1"),
                      refused(-0.1, "-0.1"),
                      refused(std::nan(""), "nan"),
                      {.inputs = {normal({3, 7}), normal({6})}, .contains = {"relu_dropout", "[7]", "[6]"}},
                      {.inputs = {normal({}), normal({1})}, .contains = {"relu_dropout", "[]"}},
                      {.inputs = {normal({2, 3}), index({3}, 3)}, .contains = {"bias", "i32"}}}},
    OpCase{.name = "relu_dropout, rate 0",
           .inputs = {{normal({2, 9}), normal({9})}},
           .function = [](std::span<const Variable> x) { return relu_dropout(x[0], x[1], 0); },
           .reference = [](std::span<const Array64> x) { return dropped_relu(x[0], x[1], 0); },
           .tolerance = {.bf16 = 2 * kRounding},
           .roles = {Role::activation, Role::vector}},
};

/// Values and gradients of x and the bias.
struct Pass {
  std::vector<double> y, dx, dbias;
  bool operator==(const Pass&) const = default;
};

TEST_CASE("relu_dropout has the bits of its three parts", "[ops]") {
  Backend& backend = each_device();
  for (const DType dtype : {DType::f32, DType::f64})
    for (const Shape& shape : {Shape{5, 24}, Shape{3, 2049}}) {
      const Shape bias_shape{shape[1]};
      const std::vector<Input> inputs{normal(shape), normal(bias_shape), normal(shape)};
      const std::vector<Array64> numbers = input_values("relu_dropout in one", inputs, DType::f32);
      const auto pass = [&](bool in_one) {
        GuardedAllocator memory(backend);
        Step step(backend, memory);
        step.begin(run_scalars());
        Tape tape(step);
        const auto leaf = [&](std::size_t i) {
          return tape.leaf(to_device(backend, memory, numbers[i], inputs[i], dtype));
        };
        const Variable x = leaf(0), bias = leaf(1), dy = leaf(2);
        const Variable y = in_one ? relu_dropout(x, bias, 0.4) : dropout(relu(add_bias(x, bias)), 0.4);
        tape.backward(y, dy.value());
        return Pass{to_host(backend, y.value()).data, to_host(backend, tape.gradient(x)).data,
                    to_host(backend, tape.gradient(bias)).data};
      };
      CHECK(pass(true) == pass(false));
    }
}

TEST_CASE("relu_dropout: dropped elements are 0 where the sum is infinite, and NaN is taken for negative", "[ops]") {
  Backend& backend = each_device();
  GuardedAllocator memory(backend);
  Step step(backend, memory);
  step.begin(run_scalars());
  constexpr std::int64_t kCount = 64;
  std::vector<double> numbers(kCount, std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i < numbers.size(); i += 2) numbers[i] = std::nan("");
  const Shape shape{1, kCount};
  const Tensor x = to_device(backend, memory, Array64{{1, kCount}, numbers}, values(shape, numbers), DType::f32);
  const std::vector<double> zeros(kCount, 0);
  const Tensor bias = to_device(backend, memory, Array64{{kCount}, zeros}, values({kCount}, zeros), DType::f32);
  Tensor y = step.empty(shape, DType::f32);
  const DropoutRule rule(0.5);
  const RandomStream random = step.next_random();
  kernels::relu_dropout_forward(step, x, bias, random, rule, y);
  const std::vector<double> got = to_host(backend, y).data;
  int infinite = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    CHECK((got[i] == 0 || (i % 2 == 1 && std::isinf(got[i]))));
    infinite += std::isinf(got[i]);
  }
  CHECK(infinite > 4);
  CHECK(infinite < 28);
}

}  // namespace
}  // namespace engram::harness::relu_dropout_test
