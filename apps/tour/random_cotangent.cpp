/// Step 12: a gradient check, and how not to make one.

#include <fmt/ostream.h>

#include <string>
#include <vector>

#include "apps/tour/tour.hpp"
#include "apps/tour/values.hpp"
#include "apps/tour/workshop.hpp"
#include "autograd/functions.hpp"
#include "autograd/gradcheck.hpp"
#include "autograd/tape.hpp"
#include "core/kernels/fill.hpp"
#include "core/kernels/softmax.hpp"

namespace engram::tour {
namespace {

struct LazySoftmax final : Node {
  std::string_view name() const override { return "lazy_softmax"; }
  void backward(Step& step, Backward& pass) override {  // wrong on purpose: the gradient is always zero
    if (Target dx = pass.input_grad(0); dx && dx.write == Write::set) kernels::fill(step, dx.tensor, 0.0);
  }
};

Variable lazy_softmax(const Variable& x) {
  Step& step = x.tape().step();
  Tensor y = step.empty(x.shape(), x.dtype());
  kernels::softmax_forward(step, x.value(), y);
  return x.tape().record(LazySoftmax{}, {x}, y);
}

void check(Workshop& shop, std::string_view title, const CheckedFunction& function, std::ostream& out) {
  const std::vector<Tensor> inputs{tensor_of(shop.heap, {2, 3}, {0.5, -1.0, 0.25, 0.75, 2.0, -0.5})};
  const GradcheckReport report = gradcheck(shop.step, function, inputs);
  fmt::print(out, "{:<34} {}\n", title, report.worst_relative < 1e-6 ? "passes" : "FAILS");
}

}  // namespace

void random_cotangent(std::ostream& out) {
  using Inputs = std::span<Variable>;
  using Outputs = std::vector<Variable>;
  const auto softmax_sum = [](Inputs x) { return Outputs{sum(softmax(x[0]))}; };
  const auto softmax_all = [](Inputs x) { return Outputs{softmax(x[0])}; };
  const auto lazy_sum = [](Inputs x) { return Outputs{sum(lazy_softmax(x[0]))}; };
  const auto lazy_all = [](Inputs x) { return Outputs{lazy_softmax(x[0])}; };
  Workshop shop;
  check(shop, "softmax, through its sum", softmax_sum, out);
  check(shop, "softmax, random cotangent", softmax_all, out);
  check(shop, "lazy softmax, through its sum", lazy_sum, out);
  check(shop, "lazy softmax, random cotangent", lazy_all, out);
}

}  // namespace engram::tour
