#include "autograd/functions/cross_entropy.hpp"
#include "autograd/functions/check_ids.hpp"

#include <limits>

#include "autograd/functions/scale.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/each_device.hpp"
#include "tests/harness/op_table.hpp"
#include "tests/reference/basic_ops.hpp"

namespace engram::harness::cross_entropy_test {
namespace {

std::vector<Variable> consume(std::span<Variable> x) {
  Tape& tape = x[0].tape();
  CrossEntropy result = cross_entropy(std::move(x[0]), x[1].value(), x[2].value());
  return {std::move(result.loss), tape.constant(std::move(result.row_loss))};
}

std::vector<Array64> plain(std::span<const Array64> x) {
  const reference::CrossEntropy result = reference::cross_entropy(x[0], integers(x[1]), x[2].data);
  return {Array64{{1}, {result.loss}}, result.row_loss};
}

Input weights(Shape shape) { return positive(shape).constant(); }

const OpCases cases{
    OpCase{
        .name = "cross_entropy",
        .inputs = {{normal({3, 7}), index({3}, 7), weights({3})},
                   {normal({2, 3, 5}), index({6}, 5), weights({6})},
                   {normal({4, 1}), index({4}, 1), weights({4})},
                   {normal({5}), index({1}, 5), weights({1})},
                   {normal({131, 211}), index({131}, 211), weights({131})},
                   {normal({3, 16411}), index({3}, 16411), weights({3})},
                   {normal({3, 4}), index({3}, 4), values({3}, {0.5, 0, 2}).constant()}},
        .function = consume,
        .reference = plain,
        .tolerance = {.f32 = 4e-6},
        .root = true,
        .errors =
            {{.inputs = {normal({3, 7}), index({2}, 7), weights({3})}, .contains = {"targets", "[3]", "[2]"}},
             {.inputs = {normal({3, 7}), index({3}, 7), weights({3, 1})}, .contains = {"row_weight", "[3]", "[3, 1]"}},
             {.inputs = {normal({3, 7}), weights({3}), weights({3})}, .contains = {"targets", "i32"}},
             {.inputs = {normal({3, 7}), index({3}, 7), index({3}, 7)}, .contains = {"row_weight", "i32"}},
             {.inputs = {normal({}), index({1}, 7), weights({1})}, .contains = {"[..., V]", "[]"}},
             {.inputs = {normal({3, 7}), index({3}, 7), weights({3})},
              .contains = {"nobody else", "2 holders", "std::move", "tape of inference"},
              .function = [](std::span<Variable> x) { return cross_entropy(x[0], x[1].value(), x[2].value()).loss; }}}},
};

struct Fixture {
  Backend& backend = each_device();
  GuardedAllocator memory{backend};
  Step step{backend, memory};

  Tensor f64(Shape shape, std::vector<double> numbers) {
    return to_device(backend, memory, Array64{{shape.count()}, numbers}, values(shape, numbers), DType::f64)
        .view(shape);
  }
  Tensor ids(std::vector<double> numbers) {
    const auto count = static_cast<std::int64_t>(numbers.size());
    return to_device(backend, memory, Array64{{count}, numbers}, harness::integers({count}, numbers), DType::f64);
  }
};

TEST_CASE_METHOD(Fixture, "cross_entropy: huge and infinite logits", "[ops]") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Tape tape(step);
  Tensor logits = f64({4, 3}, {1e5, -1e5, 0, -infinity, 2, 2, 3e307, -3e307, 0, 1e308, 1e308, -1e308});
  const Variable leaf = tape.leaf(std::move(logits));
  const Variable handle = leaf.without_value();
  Variable copy = scale(leaf, 1);
  CrossEntropy result = cross_entropy(std::move(copy), ids({0, 1, 1, 0}), f64({4}, {1, 1, 0, 0}));
  const std::vector<double> row_loss = to_host(backend, result.row_loss).data;
  CHECK(row_loss[0] == 0);
  CHECK(row_loss[1] == Approx(std::log(2.0)).epsilon(1e-14));
  CHECK(to_host(backend, result.loss.value()).data[0] == Approx(std::log(2.0)).epsilon(1e-14));
  tape.backward({result.loss});
  const std::vector<double> gradient = to_host(backend, tape.gradient(handle)).data;
  const std::vector<double> wanted{0, 0, 0, 0, -0.5, 0.5, 0, 0, 0, 0, 0, 0};
  for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(gradient[i] == Approx(wanted[i]).margin(1e-15));
}

TEST_CASE_METHOD(Fixture, "cross_entropy: a row of weight 0 adds nothing, even when its loss is infinite", "[ops]") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Tape tape(step);
  const Variable leaf = tape.leaf(f64({2, 2}, {-infinity, 0, 1, 1}));
  CrossEntropy result = cross_entropy(scale(leaf, 1), ids({0, 0}), f64({2}, {0, 1}));
  CHECK(to_host(backend, result.row_loss).data[0] == infinity);
  CHECK(to_host(backend, result.loss.value()).data[0] == Approx(std::log(2.0)).epsilon(1e-14));
  tape.backward({result.loss});
  CHECK(to_host(backend, tape.gradient(leaf)).data == std::vector<double>{0, 0, -0.5, 0.5});
}

TEST_CASE_METHOD(Fixture, "cross_entropy: the loss must be a root of backward", "[ops]") {
  Tape tape(step);
  const Variable leaf = tape.leaf(f64({2, 2}, {1, 2, 3, 4}));
  const CrossEntropy result = cross_entropy(scale(leaf, 1), ids({0, 0}), f64({2}, {1, 1}));
  CHECK_THROWS_WITH(tape.backward({scale(result.loss, 2)}),
                    ContainsSubstring("cross_entropy") && ContainsSubstring("root") && ContainsSubstring("row_weight"));
}

TEST_CASE_METHOD(Fixture, "cross_entropy: losses of two pieces are roots of one backward", "[ops]") {
  Tape tape(step);
  const Variable leaf = tape.leaf(f64({1, 2}, {0, 0}));
  const CrossEntropy first = cross_entropy(scale(leaf, 1), ids({0}), f64({1}, {1}));
  const CrossEntropy second = cross_entropy(scale(leaf, 1), ids({1}), f64({1}, {3}));
  tape.backward({first.loss, second.loss});
  CHECK(to_host(backend, tape.gradient(leaf)).data == std::vector<double>{1, -1});
}

TEST_CASE_METHOD(Fixture, "cross_entropy: debug builds name a target outside the vocabulary", "[ops]") {
  if (!ids_are_checked()) return;  // release builds do not look
  Tape tape(step);
  const Variable leaf = tape.leaf(f64({2, 2}, {1, 2, 3, 4}));
  CHECK_THROWS_WITH(cross_entropy(scale(leaf, 1), ids({0, 2}), f64({2}, {1, 1})),
                    ContainsSubstring("targets must be in [0, 2), got 2 at place 1"));
}

}  // namespace
}  // namespace engram::harness::cross_entropy_test
