#include "tests/autograd/teaching_ops.hpp"

#include <algorithm>
#include <utility>

namespace engram::harness {
namespace {

void write(const Target& target, std::int64_t i, double value) {
  double& element = target.tensor.data<double>()[i];
  element = target.write == Write::add ? element + value : value;
}

Tensor like(const Variable& x) { return x.tape().step().empty(x.shape(), DType::f64); }
const double* numbers(const Tensor& x) { return x.data<const double>(); }

struct Combine final : Node {
  std::vector<double> factors;

  explicit Combine(std::vector<double> given) : factors(std::move(given)) {}
  std::string_view name() const override { return "combine"; }
  void backward(Step&, Backward& pass) override {
    const Tensor dy = pass.output_grad();
    for (std::size_t input = 0; input < factors.size(); ++input)
      if (const Target dx = pass.input_grad(static_cast<int>(input)))
        for (std::int64_t i = 0; i < dy.count(); ++i) write(dx, i, factors[input] * numbers(dy)[i]);
  }
};

struct Multiply final : Node {
  Tensor a, b;

  Multiply(Tensor first, Tensor second) : a(std::move(first)), b(std::move(second)) {}
  std::string_view name() const override { return "multiply"; }
  std::vector<Saved> saved() const override { return {{"a", a}, {"b", b}}; }
  void backward(Step&, Backward& pass) override {
    const Tensor dy = pass.output_grad();
    if (const Target da = pass.input_grad(0))
      for (std::int64_t i = 0; i < dy.count(); ++i) write(da, i, numbers(b)[i] * numbers(dy)[i]);
    if (const Target db = pass.input_grad(1))
      for (std::int64_t i = 0; i < dy.count(); ++i) write(db, i, numbers(a)[i] * numbers(dy)[i]);
  }
};

struct Total final : Node {
  std::string_view name() const override { return "total"; }
  void backward(Step&, Backward& pass) override {
    const double dy = numbers(pass.output_grad())[0];
    const Target dx = pass.input_grad(0);
    for (std::int64_t i = 0; i < dx.tensor.count(); ++i) write(dx, i, dy);
  }
};

struct PassSum final : Node {
  int inputs;

  explicit PassSum(int count) : inputs(count) {}
  std::string_view name() const override { return "pass_sum"; }
  void backward(Step&, Backward& pass) override {
    if (inputs == 2) pass.pass_through({0, 1});
    if (inputs == 3) pass.pass_through({0, 1, 2});
  }
};

struct TwoAndThree final : Node {
  std::string_view name() const override { return "two_and_three"; }
  void backward(Step&, Backward& pass) override {
    const Target dx = pass.input_grad(0);
    for (std::int64_t i = 0; i < dx.tensor.count(); ++i) {
      double gradient = 0;
      for (const int output : {0, 1})
        if (pass.has_output_grad(output)) gradient += (2 + output) * numbers(pass.output_grad(output))[i];
      write(dx, i, gradient);
    }
  }
};

struct Probe final : Node {
  std::function<void(Step&, Backward&)> seen;

  explicit Probe(std::function<void(Step&, Backward&)> call) : seen(std::move(call)) {}
  std::string_view name() const override { return "probe"; }
  void backward(Step& step, Backward& pass) override {
    seen(step, pass);
    pass.pass_through({0});
  }
};

}  // namespace

Variable combine(std::vector<double> factors, const std::vector<Variable>& inputs) {
  Tensor y = like(inputs[0]);
  for (std::int64_t i = 0; i < y.count(); ++i) {
    y.data<double>()[i] = 0;
    for (std::size_t k = 0; k < inputs.size(); ++k) y.data<double>()[i] += factors[k] * numbers(inputs[k].value())[i];
  }
  return inputs[0].tape().record(Combine(std::move(factors)), inputs, y);
}

Variable multiply(const Variable& a, const Variable& b) {
  Tensor y = like(a);
  for (std::int64_t i = 0; i < y.count(); ++i) y.data<double>()[i] = numbers(a.value())[i] * numbers(b.value())[i];
  return a.tape().record(Multiply(a.value(), b.value()), {a, b}, y);
}

Variable total(const Variable& x) {
  Tensor y = x.tape().step().empty({1}, DType::f64);
  y.data<double>()[0] = 0;
  for (std::int64_t i = 0; i < x.value().count(); ++i) y.data<double>()[0] += numbers(x.value())[i];
  return x.tape().record(Total{}, {x}, y);
}

Variable pass_sum(const std::vector<Variable>& inputs) {
  const Variable sum = combine(std::vector<double>(inputs.size(), 1.0), inputs);
  return inputs[0].tape().record(PassSum(static_cast<int>(inputs.size())), inputs, sum.value());
}

std::array<Variable, 2> two_and_three(const Variable& x) {
  std::array<Tensor, 2> outputs{like(x), like(x)};
  for (int output : {0, 1})
    for (std::int64_t i = 0; i < x.value().count(); ++i)
      outputs[static_cast<std::size_t>(output)].data<double>()[i] = (2 + output) * numbers(x.value())[i];
  return x.tape().record_outputs(TwoAndThree{}, {x}, std::move(outputs));
}

Variable probe(const Variable& x, std::function<void(Step&, Backward&)> seen) {
  Tensor y = like(x);
  std::ranges::copy_n(numbers(x.value()), x.value().count(), y.data<double>());
  return x.tape().record(Probe(std::move(seen)), {x}, y);
}

}  // namespace engram::harness
