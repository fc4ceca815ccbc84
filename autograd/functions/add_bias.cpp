#include "autograd/functions/add_bias.hpp"

#include "autograd/tape.hpp"
#include "core/check.hpp"
#include "core/error.hpp"
#include "core/kernels/bias.hpp"
#include "core/kernels/copy.hpp"

namespace engram {
namespace {

struct AddBias final : Node {
  std::string_view name() const override { return "add_bias"; }
  void backward(Step& step, Backward& pass) override {
    if (Target dbias = pass.input_grad(1)) kernels::bias_backward(step, pass.output_grad(), dbias);
    if (pass.wants_grad(0)) pass.pass_through({0});  // last: the gradient may be moved
  }
};

}  // namespace

Variable add_bias(const Variable& x, const Variable& bias) {
  if (x.shape().rank() < 1) throw ShapeError(text("add_bias: x must be [..., n], got ", x.shape()));
  check_shape("add_bias", "bias", bias.value(), {x.shape()[-1]});
  check_dtype("add_bias", "bias", bias.value(), compute_dtype(x.dtype()));
  check_same_device("add_bias", x.value(), bias.value());
  Step& step = x.tape().step();
  Tensor y = step.empty(x.shape(), x.dtype());
  kernels::accumulate(step, x.value(), 1.0, {y, Write::set});
  kernels::bias_forward(step, bias.value(), y);
  return x.tape().record(AddBias{}, {x, bias}, std::move(y));
}

}  // namespace engram
