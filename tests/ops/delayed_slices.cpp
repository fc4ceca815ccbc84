#include "autograd/functions/delayed_slices.hpp"

#include "autograd/tape.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/each_device.hpp"
#include "tests/harness/op_table.hpp"
#include "tests/reference/window_attention.hpp"

namespace engram::harness::delayed_slices_test {
namespace {

Function in_parts(std::int64_t parts) {
  return [=](std::span<const Variable> x) { return delayed_slices(x[0], x[1].value(), parts); };
}
OpCase delayed(const char* name, std::int64_t parts, std::vector<std::vector<Input>> inputs) {
  return {.name = name,
          .inputs = std::move(inputs),
          .function = in_parts(parts),
          .reference = [=](std::span<const Array64> x) { return reference::delayed_parts(x[0], x[1], parts); },
          .tolerance = {.bf16 = kMoved}};
}

/// Sequences that begin in the block, or were carried over.
const Input kTwoArticles = integers({2, 6}, {0, 1, 2, 0, 1, 2, 7, 8, 9, 10, 0, 1});

OpCase with_errors() {
  OpCase op = delayed("delayed_slices", 3,
                      {{normal({2, 6, 3}), kTwoArticles},
                       {normal({2, 8, 12}), kTwoArticles},
                       {normal({2, 11, 393}), kTwoArticles},
                       {normal({3, 1, 6}), index({3, 1}, 4)},
                       {normal({2, 137, 129}), index({2, 130}, 9)}});
  op.errors = {
      {.inputs = {normal({2, 6, 10}), kTwoArticles}, .contains = {"3 equal parts", "got 10", "9 and 12"}},
      {.inputs = {normal({2, 6, 2}), kTwoArticles}, .contains = {"got 2", "the nearest: 3"}},
      {.inputs = {normal({2, 6, 10}), kTwoArticles}, .contains = {"at least 1 part", "got 0"}, .function = in_parts(0)},
      {.inputs = {normal({2, 5, 3}), kTwoArticles}, .contains = {"[B, C + M, n]", "[2, 6]", "[2, 5, 3]"}},
      {.inputs = {normal({6, 3}), kTwoArticles}, .contains = {"[B, C + M, n]", "[6, 3]"}},
      {.inputs = {normal({2, 6, 3}), integers({6}, {0, 1, 2, 3, 4, 5})}, .contains = {"preceding", "[B, M]", "[6]"}},
      {.inputs = {normal({2, 6, 3}), normal({2, 6})}, .contains = {"preceding must be i32", "f32"}},
  };
  return op;
}

const OpCases cases{
    with_errors(),
    delayed("delayed_slices, one part", 1, {{normal({2, 7, 5}), kTwoArticles}}),
    delayed("delayed_slices, more parts than rows", 9, {{normal({2, 6, 18}), kTwoArticles}}),
};

/// x: [1, C + M, k] of consecutive numbers from 1.
struct DelayFixture {
  Backend& backend = each_device();
  GuardedAllocator memory{backend};
  Step step{backend, memory};
  Tape tape{step};

  Tensor tensor(const Input& input) {
    return to_device(backend, memory, Array64{{input.shape.count()}, input.values}, input, DType::f32)
        .view(input.shape);
  }
  Tensor numbers(Shape shape) {
    std::vector<double> values_from_1;
    for (std::int64_t i = 0; i < shape.count(); ++i) values_from_1.push_back(static_cast<double>(i + 1));
    return tensor(values(shape, values_from_1));
  }
  std::vector<double> host(const Tensor& x) { return to_host(backend, x).data; }
};

TEST_CASE_METHOD(DelayFixture, "delayed_slices: worked example of three parts with one carried row",
                 "[window][worked]") {
  // Rows: carried (1 2 3), then (4 5 6), (7 8 9), (10 11 12), of which the last begins a sequence.
  const Variable x = tape.leaf(numbers({1, 4, 3}));
  const Variable y = delayed_slices(x, tensor(integers({1, 3}, {5, 6, 0})), 3);
  CHECK(host(y.value()) == std::vector<double>{4, 2, 0, 7, 5, 3, 10, 0, 0});
  tape.backward(y, numbers({1, 3, 3}));
  CHECK(host(tape.gradient(x)) == std::vector<double>{0, 2, 6, 1, 5, 0, 4, 0, 0, 7, 0, 0});
}

TEST_CASE_METHOD(DelayFixture, "delayed_slices: one part is the block itself; with constant rows, any number is",
                 "[window][worked]") {
  const Tensor before = tensor(integers({1, 4}, {0, 1, 2, 3}));
  CHECK(host(delayed_slices(tape.constant(numbers({1, 4, 3})), before, 1).value()) == host(numbers({1, 4, 3})));
  const Variable same = tape.constant(tensor(values({1, 4, 2}, {1, 2, 1, 2, 1, 2, 1, 2})));
  CHECK(host(delayed_slices(same, before, 2).value()) == std::vector<double>{1, 0, 1, 2, 1, 2, 1, 2});
}

TEST_CASE_METHOD(DelayFixture, "delayed_slices: rows of another sequence are not looked at", "[window]") {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const Variable x = tape.leaf(tensor(values({1, 4, 2}, {kNaN, kNaN, 1, 2, 3, kNaN, 5, 6})));
  const Variable y = delayed_slices(x, tensor(integers({1, 3}, {0, 1, 0})), 2);
  CHECK(host(y.value()) == std::vector<double>{1, 0, 3, 2, 5, 0});
}

}  // namespace
}  // namespace engram::harness::delayed_slices_test
