#include "autograd/functions/scale.hpp"

#include "autograd/tape.hpp"
#include "core/kernels/copy.hpp"

namespace engram {
namespace {

struct Scale final : Node {
  double factor;

  explicit Scale(double scale_factor) : factor(scale_factor) {}
  std::string_view name() const override { return "scale"; }
  void backward(Step& step, Backward& pass) override {
    if (Target dx = pass.input_grad(0)) kernels::accumulate(step, pass.output_grad(), factor, dx);
  }
};

}  // namespace

Variable scale(const Variable& x, double factor) {
  Step& step = x.tape().step();
  Tensor y = step.empty(x.shape(), x.dtype());
  kernels::accumulate(step, x.value(), factor, {y, Write::set});
  return x.tape().record(Scale{factor}, {x}, std::move(y));
}

}  // namespace engram
