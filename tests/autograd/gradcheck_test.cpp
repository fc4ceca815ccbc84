#include "autograd/gradcheck.hpp"

#include <cmath>

#include "autograd/functions/softmax.hpp"
#include "core/error.hpp"
#include "tests/autograd/step_fixture.hpp"
#include "tests/autograd/teaching_ops.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::gradcheck_test {
namespace {

/// y = x - mean(x), with a derivative that is claimed to be zero.
Variable centred_without_gradient(const Variable& x) {
  struct Centred final : Node {
    std::string_view name() const override { return "centred"; }
    void backward(Step&, Backward& pass) override {
      const Target dx = pass.input_grad(0);
      if (dx.write == Write::set) std::fill_n(dx.tensor.data<double>(), dx.tensor.count(), 0.0);
    }
  };
  Tensor y = x.tape().step().empty(x.shape(), DType::f64);
  double mean = 0;
  for (std::int64_t i = 0; i < y.count(); ++i) mean += x.value().data<double>()[i] / static_cast<double>(y.count());
  for (std::int64_t i = 0; i < y.count(); ++i) y.data<double>()[i] = x.value().data<double>()[i] - mean;
  return x.tape().record(Centred{}, {x}, y);
}

TEST_CASE("gradcheck: a right derivative, also of a value that is used twice", "[autograd]") {
  StepFixture f;
  const std::vector<Tensor> inputs{f.tensor({2, 2}, {0.3, -1, 2, 0.5}), f.tensor({2, 2}, {1, 2, 3, 4})};
  const GradcheckReport report = gradcheck(
      f.step,
      [](std::span<Variable> x) {
        const Variable y = softmax(x[0]);
        return std::vector{multiply(y, x[1]), multiply(x[0], y)};
      },
      inputs);
  INFO(report.line());
  CHECK(report.checked == 8);
  CHECK(report.worst_relative < 1e-9);
  CHECK(report.worst_absolute > 0);
  CHECK(f.values(inputs[0]) == std::vector<double>{0.3, -1, 2, 0.5});
}

TEST_CASE("gradcheck: a derivative that only a sum of outputs would hide", "[autograd]") {
  StepFixture f;
  const std::vector<Tensor> inputs{f.tensor({3}, {1, 2, 3})};
  const GradcheckReport through_sum = gradcheck(
      f.step, [](std::span<Variable> x) { return std::vector{total(centred_without_gradient(x[0]))}; }, inputs);
  CHECK(through_sum.worst_absolute < 1e-9);
  const GradcheckReport report = gradcheck(
      f.step, [](std::span<Variable> x) { return std::vector{centred_without_gradient(x[0])}; }, inputs);
  INFO(report.line());
  CHECK(report.worst_relative == Approx(1));
  CHECK(report.analytic == 0);
  CHECK(std::abs(report.numeric) > 0.1);
}

TEST_CASE("gradcheck: the report names the worst input and element", "[autograd]") {
  StepFixture f;
  const std::vector<Tensor> inputs{f.tensor({2}, {1, 2}), f.tensor({3}, {1, 2, 3})};
  const GradcheckReport report = gradcheck(
      f.step,
      [](std::span<Variable> x) {
        return std::vector{x[0], centred_without_gradient(x[1])};
      },
      inputs);
  CHECK(report.checked == 5);
  CHECK(report.input == 1);
  CHECK(report.element >= 0);
  CHECK(report.line().find("at input 1 element ") != std::string::npos);
}

TEST_CASE("gradcheck: a cotangent that is given, and every element seen", "[autograd]") {
  StepFixture f;
  const std::vector<Tensor> inputs{f.tensor({2}, {1, 2}), f.tensor({2}, {3, 4})};
  const auto product = [](std::span<Variable> x) { return std::vector{multiply(x[0], x[1])}; };
  std::vector<double> analytic, numeric;
  std::vector<std::int64_t> places;
  const auto note = [&](const CheckedElement& element) {
    analytic.push_back(element.analytic);
    numeric.push_back(element.numeric);
    places.push_back(10 * element.input + element.element);
    CHECK(element.relative < 1e-9);
  };
  CHECK(gradcheck(f.step, product, inputs, {.cotangents = {{1, -2}}, .each = note}).checked == 4);
  CHECK(analytic == std::vector<double>{3, -8, 1, -4});
  CHECK(places == std::vector<std::int64_t>{0, 1, 10, 11});
  for (std::size_t i = 0; i < 4; ++i) CHECK(numeric[i] == Approx(analytic[i]));
  CHECK_THROWS_WITH(gradcheck(f.step, product, inputs, {.cotangents = {{1, 2, 3}}}),
                    ContainsSubstring("output 0 must have 2 numbers, got 3"));
}

TEST_CASE("gradcheck: constants, integers, absent and unused inputs", "[autograd]") {
  StepFixture f;
  Tensor integer = f.step.empty({1}, DType::i32);
  integer.data<std::int32_t>()[0] = 3;
  const std::vector<Tensor> inputs{f.tensor({1}, {2}), f.tensor({1}, {5}), integer, Tensor{}, f.tensor({2}, {1, 1})};
  const GradcheckReport report = gradcheck(f.step,
                                           [](std::span<Variable> x) {
                                             CHECK_FALSE(x[1].requires_grad());
                                             CHECK(x[2].value().data<std::int32_t>()[0] == 3);
                                             CHECK_FALSE(x[3]);
                                             return std::vector{multiply(x[0], x[1])};
                                           },
                                           inputs, {.constants = {1}});
  CHECK(report.checked == 3);
  CHECK(report.worst_relative < 1e-9);
}

TEST_CASE("gradcheck: of large inputs a random choice is checked", "[autograd]") {
  StepFixture f;
  const std::vector<Tensor> inputs{f.tensor({1000}, std::vector<double>(1000, 1.5))};
  const auto square = [](std::span<Variable> x) { return std::vector{multiply(x[0], x[0])}; };
  const GradcheckReport report = gradcheck(f.step, square, inputs, {.elements = 20});
  CHECK(report.checked > 10);
  CHECK(report.checked <= 20);
  CHECK(report.worst_relative < 1e-8);
}

TEST_CASE("gradcheck: a gradient that is not finite is the worst of all", "[autograd]") {
  StepFixture f;
  const GradcheckReport report = gradcheck(
      f.step,
      [&f](std::span<Variable> x) {
        return std::vector{multiply(x[0], x[0].tape().constant(f.tensor({1}, {std::nan("")})))};
      },
      std::vector<Tensor>{f.tensor({1}, {1})});
  CHECK(std::isinf(report.worst_relative));
}

TEST_CASE("gradcheck: tensors without elements, nothing to differentiate, a function that forgot to record",
          "[autograd]") {
  StepFixture f;
  const std::vector<Tensor> inputs{f.tensor({0, 3}, {}), f.tensor({1}, {2})};
  const auto both = [](std::span<Variable> x) { return std::vector{multiply(x[0], x[0]), multiply(x[1], x[1])}; };
  CHECK(gradcheck(f.step, both, inputs).checked == 1);
  CHECK(gradcheck(
            f.step, [](std::span<Variable> x) { return std::vector{multiply(x[0], x[0])}; },
            std::vector<Tensor>{f.tensor({0}, {})})
            .checked == 0);
  CHECK(gradcheck(f.step, both, inputs, {.constants = {0, 1}}).checked == 0);
  const auto forgot = [](std::span<Variable> x) { return std::vector{x[0].tape().constant(x[0].value())}; };
  CHECK_THROWS_AS(gradcheck(f.step, forgot, inputs), Error);
}

TEST_CASE("gradcheck: memory of the step is given back", "[autograd]") {
  StepFixture f;
  const std::vector<Tensor> inputs{f.tensor({4}, {1, 2, 3, 4})};
  const std::size_t before = f.memory.bytes_in_use();
  gradcheck(
      f.step, [](std::span<Variable> x) { return std::vector{softmax(x[0])}; }, inputs);
  CHECK(f.memory.bytes_in_use() == before);
  CHECK(f.memory.faults().empty());
}

TEST_CASE("backward_from: several outputs, some left out", "[autograd]") {
  StepFixture f;
  Tape tape(f.step);
  const Variable x = tape.leaf(f.tensor({2}, {1, 2}));
  const auto outputs = two_and_three(x);
  std::vector<Tensor> cotangents(2);
  cotangents[1] = f.tensor({2}, {1, 10});
  backward_from(outputs, std::move(cotangents));
  CHECK(f.values(tape.gradient(x)) == std::vector<double>{3, 30});

  Tape other(f.step);
  const std::vector<Variable> y{combine({2}, {other.leaf(f.tensor({2}, {1, 2}))})};
  CHECK_THROWS_WITH(backward_from(y, {f.tensor({1}, {1})}), "backward_from: cotangent 0 must be [2], got [1]");
  CHECK_THROWS_AS(backward_from(y, {Tensor{}}), Error);
}

}  // namespace
}  // namespace engram::harness::gradcheck_test
