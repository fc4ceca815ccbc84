#include "autograd/functions/relu_dropout.hpp"

#include <string_view>

#include "autograd/functions/add_bias.hpp"
#include "autograd/functions/dropout_rule.hpp"
#include "autograd/functions/pointwise.hpp"
#include "autograd/tape.hpp"
#include "core/check.hpp"
#include "core/kernels/relu_dropout.hpp"

namespace engram {
namespace {

struct ReluDropout final : Node {
  Tensor y;
  DropoutRule rule;

  ReluDropout(Tensor output, DropoutRule dropout_rule) : y(std::move(output)), rule(dropout_rule) {}
  std::string_view name() const override { return "relu_dropout"; }
  std::vector<Saved> saved() const override { return {{"y", y}}; }
  void backward(Step& step, Backward& pass) override {
    if (!pass.wants_grad(0) && !pass.wants_grad(1)) return;
    Tensor dsum = step.empty(y.shape(), y.dtype());
    kernels::relu_dropout_backward(step, y, pass.output_grad(), rule, dsum, pass.input_grad(1));
    if (pass.wants_grad(0)) pass.give(0, std::move(dsum));
  }
};

}  // namespace

Variable relu_dropout(const Variable& x, const Variable& bias, double rate) {
  const DropoutRule rule = dropout_rule("relu_dropout", rate);
  if (x.shape().rank() < 1) throw ShapeError(text("relu_dropout: x must be [..., n], got ", x.shape()));
  check_shape("relu_dropout", "bias", bias.value(), {x.shape()[-1]});
  check_dtype("relu_dropout", "bias", bias.value(), compute_dtype(x.dtype()));
  check_same_device("relu_dropout", x.value(), bias.value());
  if (!x.tape().training() || !rule.active()) return relu(add_bias(x, bias));
  Step& step = x.tape().step();
  const RandomStream random = step.next_random();
  Tensor y = step.empty(x.shape(), x.dtype());
  kernels::relu_dropout_forward(step, x.value(), bias.value(), random, rule, y);
  return x.tape().record(ReluDropout{y, rule}, {x, bias}, y);
}

}  // namespace engram
