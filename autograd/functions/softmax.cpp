#include "autograd/functions/softmax.hpp"

#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "core/kernels/softmax.hpp"

namespace engram {
namespace {

struct Softmax final : Node {
  Tensor y;  // [..., n]: all the derivative needs

  explicit Softmax(Tensor output) : y(std::move(output)) {}
  std::string_view name() const override { return "softmax"; }
  std::vector<Saved> saved() const override { return {{"y", y}}; }
  void backward(Step& step, Backward& pass) override {
    if (Target dx = pass.input_grad(0)) kernels::softmax_backward(step, y, pass.output_grad(), dx);
  }
};

}  // namespace

Variable softmax(const Variable& x) {
  if (x.shape().rank() < 1 || x.shape()[-1] < 1)
    throw ShapeError(text("softmax: x must have at least one axis, not empty, got ", x.shape()));
  Step& step = x.tape().step();
  Tensor y = step.empty(x.shape(), x.dtype());
  kernels::softmax_forward(step, x.value(), y);
  return x.tape().record(Softmax{y}, {x}, y);
}

}  // namespace engram
