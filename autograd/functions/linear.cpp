#include "autograd/functions/linear.hpp"

#include "autograd/functions/as_operand.hpp"
#include "autograd/tape.hpp"
#include "core/check.hpp"
#include "core/error.hpp"
#include "core/kernels/bias.hpp"
#include "core/kernels/matmul.hpp"

namespace engram {
namespace {

using kernels::Transpose;

struct Linear final : Node {
  Tensor x;       // [..., in], for the weight's gradient
  Tensor weight;  // [out, in], for the input's

  Linear(Tensor input, Tensor matrix) : x(std::move(input)), weight(std::move(matrix)) {}
  std::string_view name() const override { return "linear"; }
  std::vector<Saved> saved() const override { return {{"x", x}, {"weight", weight}}; }
  void backward(Step& step, Backward& pass) override {
    const MatrixView dy = MatrixView::flat(as_operand(step, pass.output_grad(), x));
    if (Target dx = pass.input_grad(0))
      kernels::matmul(step, dy, Transpose::no, MatrixView::of(weight), Transpose::no, MatrixView::flat(dx.tensor), 1,
                      1.0, dx.write);
    if (Target dweight = pass.input_grad(1))
      kernels::matmul(step, dy, Transpose::yes, MatrixView::flat(x), Transpose::no, MatrixView::of(dweight.tensor), 1,
                      1.0, dweight.write);
    if (Target dbias = pass.input_grad(2)) kernels::bias_backward(step, pass.output_grad(), dbias);
  }
};

}  // namespace

Variable linear(const Variable& x, const Variable& weight, const Variable& bias, ProductResult result) {
  if (weight.shape().rank() != 2 || x.shape().rank() < 1 || x.shape()[-1] != weight.shape()[1])
    throw ShapeError(
        text("linear: x must be [..., in] and weight [out, in], got ", x.shape(), " and ", weight.shape()));
  check_dtype("linear", "weight", weight.value(), x.dtype());
  check_same_device("linear", x.value(), weight.value());
  const std::int64_t out = weight.shape()[0];
  if (bias) {
    check_shape("linear", "bias", bias.value(), {out});
    check_dtype("linear", "bias", bias.value(), compute_dtype(x.dtype()));
  }
  Step& step = x.tape().step();
  const DType dtype = result == ProductResult::summed ? compute_dtype(x.dtype()) : x.dtype();
  Tensor y = step.empty(x.shape().with(-1, out), dtype);
  kernels::matmul(step, MatrixView::flat(x.value()), Transpose::no, MatrixView::of(weight.value()), Transpose::yes,
                  MatrixView::flat(y), 1, 1.0, Write::set);
  if (bias) kernels::bias_forward(step, bias.value(), y);
  return x.tape().record(Linear{x.value(), weight.value()}, {x, weight, bias}, std::move(y));
}

}  // namespace engram
