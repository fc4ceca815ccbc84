#include "autograd/functions/linear_cross_entropy.hpp"

#include <cmath>
#include <memory>

#include "autograd/functions/cross_entropy.hpp"
#include "autograd/functions/linear.hpp"
#include "autograd/functions/scale.hpp"
#include "autograd/parameter_store.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/each_device.hpp"
#include "tests/harness/op_table.hpp"
#include "tests/reference/basic_ops.hpp"

namespace engram::harness::linear_cross_entropy_test {
namespace {

Function in_blocks(std::int64_t rows) {
  return [rows](std::span<Variable> x) -> std::vector<Variable> {
    LinearCrossEntropy result = linear_cross_entropy(x[0], x[1], x[2], x[3].value(), x[4].value(), rows);
    return {std::move(result.loss), x[0].tape().constant(std::move(result.row_loss))};
  };
}

std::vector<Array64> plain(std::span<const Array64> x) {
  const reference::CrossEntropy result =
      reference::cross_entropy(reference::linear(x[0], x[1], x[2]), integers(x[3]), x[4].data);
  return {Array64{{1}, {result.loss}}, result.row_loss};
}

Input weights(Shape shape) { return positive(shape).constant(); }

/// In bf16 the gradient of the logits is rounded, as an operand of the weight's.
OpCase blocks_of(std::int64_t rows, const char* name) {
  return {.name = name,
          .inputs = {{normal({3, 4}), normal({7, 4}), normal({7}), index({3}, 7), weights({3})},
                     {normal({2, 3, 5}), normal({11, 5}), normal({11}), index({6}, 11), weights({6})},
                     {normal({4, 1}), normal({1, 1}), normal({1}), index({4}, 1), weights({4})},
                     {normal({5}), normal({3, 5}), normal({3}), index({1}, 3), weights({1})},
                     {normal({37, 9}), normal({211, 9}), normal({211}), index({37}, 211), weights({37})},
                     {normal({50, 37}), normal({401, 37}), normal({401}), index({50}, 401), weights({50})},
                     {normal({3, 4}), normal({5, 4}), normal({5}), index({3}, 5), values({3}, {0.5, 0, 2}).constant()}},
          .function = in_blocks(rows),
          .reference = plain,
          .tolerance = {.f32 = 1e-5, .bf16 = 2 * kRounding, .bf16_sums = kRounding},
          .roles = {Role::activation, Role::matrix, Role::vector, Role::activation, Role::vector},
          .root = true};
}

OpCase with_errors(OpCase op) {
  const auto given = [](Input x, Input weight, Input bias, Input targets, Input row_weight) {
    return std::vector<Input>{x, weight, bias, targets, row_weight};
  };
  op.errors = {{.inputs = given(normal({3, 4}), normal({7, 5}), normal({7}), index({3}, 7), weights({3})),
                .contains = {"x must be [..., n]", "[3, 4]", "[7, 5]"}},
               {.inputs = given(normal({3, 4}), normal({7, 4}), normal({4}), index({3}, 7), weights({3})),
                .contains = {"bias", "[7]", "[4]"}},
               {.inputs = given(normal({3, 4}), normal({7, 4}), normal({7}), index({2}, 7), weights({3})),
                .contains = {"targets", "[3]", "[2]"}},
               {.inputs = given(normal({3, 4}), normal({7, 4}), normal({7}), index({3}, 7), weights({3, 1})),
                .contains = {"row_weight", "[3]", "[3, 1]"}},
               {.inputs = given(normal({3, 4}), normal({7, 4}), normal({7}), index({3}, 7), weights({3})),
                .contains = {"at least 1 row", "got 0"},
                .function = [](std::span<Variable> x) {
                  return linear_cross_entropy(x[0], x[1], x[2], x[3].value(), x[4].value(), 0).loss;
                }}};
  return op;
}

const OpCases cases{blocks_of(1, "linear_cross_entropy, rows one by one"),
                    blocks_of(7, "linear_cross_entropy, 7 rows a block"),
                    with_errors(blocks_of(1000, "linear_cross_entropy"))};

struct Fixture {
  Backend& backend = each_device();
  GuardedAllocator memory{backend};
  Step step{backend, memory};

  /// Numbers of the input, the same for the same name.
  Tensor tensor(const std::string& name, const Input& input) {
    return to_device(backend, memory, input_values(name, {input}, DType::f64)[0], input, DType::f64);
  }
};

TEST_CASE_METHOD(Fixture, "linear_cross_entropy: gradients of parameters are theirs, added to", "[ops]") {
  Parameter weight({5, 3}, {Initializer::Kind::normal, 1.0}), bias({5}, {Initializer::Kind::normal, 1.0});
  ParameterStore store;
  store.add("weight", weight);
  store.add("bias", bias);
  store.place(backend, DType::f64, 1);
  const Tensor x = tensor("x", normal({4, 3})), targets = tensor("targets", index({4}, 5)),
               row_weight = tensor("row_weight", weights({4}));
  const auto gradients = [&](auto losses) {
    store.zero_gradients(step);
    for (int i = 0; i < 2; ++i) {
      Tape tape(step);
      tape.backward({losses(tape)});
    }
    std::vector<double> all = to_host(backend, weight.gradient()).data;
    const std::vector<double> more = to_host(backend, bias.gradient()).data;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const std::vector<double> fused = gradients([&](Tape& tape) {
    return linear_cross_entropy(tape.constant(x), tape.parameter(weight), tape.parameter(bias), targets, row_weight, 3)
        .loss;
  });
  const std::vector<double> apart = gradients([&](Tape& tape) {
    return cross_entropy(linear(tape.constant(x), tape.parameter(weight), tape.parameter(bias)), targets, row_weight)
        .loss;
  });
  double largest = 0;
  for (std::size_t i = 0; i < fused.size(); ++i) {
    CHECK(fused[i] == Approx(apart[i]).margin(1e-14));
    largest = std::max(largest, std::abs(fused[i]));
  }
  CHECK(largest > 0.1);
  // Moving all logits by one number changes nothing, so the bias's gradient sums to zero.
  double sum = 0;
  for (std::size_t i = 15; i < fused.size(); ++i) sum += fused[i];
  CHECK(std::abs(sum) < 1e-14);
}

TEST_CASE_METHOD(Fixture, "linear_cross_entropy: without a gradient nothing is changed and nothing recorded", "[ops]") {
  Parameter weight({5, 3}, {Initializer::Kind::normal, 1.0}), bias({5}, {Initializer::Kind::normal, 1.0});
  ParameterStore store;
  store.add("weight", weight);
  store.add("bias", bias);
  store.place(backend, DType::f64, 1);
  Tape tape(step, Tape::Mode::inference);
  const LinearCrossEntropy result =
      linear_cross_entropy(tape.constant(tensor("x", normal({4, 3}))), tape.parameter(weight), tape.parameter(bias),
                           tensor("targets", index({4}, 5)), tensor("row_weight", weights({4})), 2);
  CHECK_FALSE(result.loss.requires_grad());
  for (const double number : to_host(backend, weight.gradient()).data) CHECK(number == 0);
}

TEST_CASE("linear_cross_entropy: products of rounded operands are those of its parts", "[ops][gemm]") {
  const std::int64_t rows = GENERATE(1, 50, 200), words = GENERATE(5, 401), width = GENERATE(3, 40);
  CAPTURE(rows, words, width);
  const std::unique_ptr<Backend>& backend = available_backends().front();
  // The loss, and the gradients of x, weight and bias.
  const auto results = [&](ProductPrecision products, bool in_one) {
    GuardedAllocator memory(*backend);
    Step step(*backend, memory);
    step.set_products(products);
    Tape tape(step);
    const auto tensor = [&](const char* name, const Input& input) {
      return to_device(*backend, memory, input_values(name, {input}, DType::f32)[0], input, DType::f32);
    };
    const Variable x = tape.leaf(tensor("x", normal({rows, width}))),
                   weight = tape.leaf(tensor("weight", normal({words, width}))),
                   bias = tape.leaf(tensor("bias", normal({words})));
    const Tensor targets = tensor("targets", index({rows}, words)), weights = tensor("weights", positive({rows}));
    const Variable loss = in_one ? linear_cross_entropy(x, weight, bias, targets, weights, 70).loss
                                 : cross_entropy(linear(x, weight, bias), targets, weights).loss;
    std::vector<Array64> all{to_host(*backend, loss.value())};
    tape.backward({loss});
    for (const Variable* of : {&x, &weight, &bias}) all.push_back(to_host(*backend, tape.gradient(*of)));
    CHECK(memory.faults().empty());
    return all;
  };
  const std::vector<Array64> plain = results(ProductPrecision::f32, true);
  const std::vector<Array64> parts = results(ProductPrecision::bf16, false);
  const std::vector<Array64> fused = results(ProductPrecision::bf16, true);
  for (std::size_t i = 0; i < fused.size(); ++i) {
    CAPTURE(i);
    double apart = 0, rounded = 0;
    for (std::size_t j = 0; j < fused[i].data.size(); ++j) {
      REQUIRE(std::isfinite(fused[i].data[j]));
      apart = std::max(apart, std::abs(fused[i].data[j] - parts[i].data[j]));
      rounded = std::max(rounded, std::abs(fused[i].data[j] - plain[i].data[j]));
    }
    // Sums have other orders; a gradient beside a tie may be rounded to the other number.
    CHECK(apart < 0.1 * rounded + 1e-5);
    CHECK(rounded > 1e-5);
  }
}

TEST_CASE_METHOD(Fixture, "linear_cross_entropy: weights of zero make every loss ln V", "[ops]") {
  constexpr std::int64_t kWords = 77000;
  Tape tape(step, Tape::Mode::inference);
  const auto zeros = [&](Shape shape) {
    return tensor("zeros", values(shape, std::vector<double>(static_cast<std::size_t>(shape.count()))));
  };
  const LinearCrossEntropy result = linear_cross_entropy(
      tape.constant(tensor("x", normal({2, 3}))), tape.constant(zeros({kWords, 3})), tape.constant(zeros({kWords})),
      tensor("targets", index({2}, kWords)), tensor("row_weight", weights({2})), 1);
  for (const double loss : to_host(backend, result.row_loss).data)
    CHECK(loss == Approx(std::log(77000.0)).epsilon(1e-14));
}

TEST_CASE_METHOD(Fixture, "linear_cross_entropy: ignored rows give exactly nothing, whatever they hold", "[ops]") {
  constexpr std::int64_t kRows = 40, kWidth = 21, kWords = 1000;
  std::vector<double> weights(kRows, 0.25);
  for (std::int64_t r = 1; r < kRows; r += 2) weights[static_cast<std::size_t>(r)] = 0;
  const auto gradient_of = [&](double factor) {
    Tape tape(step);
    std::vector<double> x = input_values("x", {normal({kRows, kWidth})}, DType::f64)[0].data;
    for (std::int64_t i = 0; i < kRows * kWidth; ++i)
      if (i / kWidth % 2 == 1) x[static_cast<std::size_t>(i)] *= factor;
    const Variable hidden = tape.leaf(tensor("hidden", values({kRows, kWidth}, x)));
    const Variable weight = tape.leaf(tensor("weight", normal({kWords, kWidth})));
    const LinearCrossEntropy result =
        linear_cross_entropy(hidden, weight, tape.constant(tensor("bias", normal({kWords}))),
                             tensor("targets", index({kRows}, kWords)), tensor("w", values({kRows}, weights)), 16);
    tape.backward({result.loss});
    std::vector<double> all = to_host(backend, tape.gradient(hidden)).data;
    for (std::int64_t i = 0; i < kRows * kWidth; ++i)
      if (i / kWidth % 2 == 1) CHECK(all[static_cast<std::size_t>(i)] == 0);
    const std::vector<double> more = to_host(backend, tape.gradient(weight)).data;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  CHECK(gradient_of(1) == gradient_of(1e3));
}

TEST_CASE_METHOD(Fixture, "linear_cross_entropy: the loss must be a root of backward", "[ops]") {
  Tape tape(step);
  const Variable x = tape.leaf(tensor("x", normal({2, 3})));
  const LinearCrossEntropy result = linear_cross_entropy(
      x, tape.constant(tensor("weight", normal({5, 3}))), tape.constant(tensor("bias", normal({5}))),
      tensor("targets", index({2}, 5)), tensor("row_weight", weights({2})), 2);
  CHECK_THROWS_WITH(tape.backward({scale(result.loss, 2)}),
                    ContainsSubstring("linear_cross_entropy") && ContainsSubstring("root"));
}

}  // namespace
}  // namespace engram::harness::linear_cross_entropy_test
