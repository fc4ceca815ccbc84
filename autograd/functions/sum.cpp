#include "autograd/functions/sum.hpp"

#include "autograd/tape.hpp"
#include "core/kernels/reduce.hpp"

namespace engram {
namespace {

struct Sum final : Node {
  double factor;

  explicit Sum(double scale_factor) : factor(scale_factor) {}
  std::string_view name() const override { return "sum"; }
  void backward(Step& step, Backward& pass) override {
    if (Target dx = pass.input_grad(0)) kernels::sum_backward(step, pass.output_grad(), factor, dx);
  }
};

}  // namespace

Variable sum(const Variable& x, double factor) {
  Step& step = x.tape().step();
  Tensor y = step.empty({1}, compute_dtype(x.dtype()));
  kernels::sum_forward(step, x.value(), factor, y);
  return x.tape().record(Sum{factor}, {x}, std::move(y));
}

}  // namespace engram
