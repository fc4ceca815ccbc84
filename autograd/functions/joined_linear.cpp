#include "autograd/functions/joined_linear.hpp"

#include "autograd/functions/as_operand.hpp"
#include "autograd/tape.hpp"
#include "core/check.hpp"
#include "core/error.hpp"
#include "core/kernels/bias.hpp"
#include "core/kernels/copy.hpp"
#include "core/kernels/matmul.hpp"

namespace engram {
namespace {

using kernels::Transpose;

/// The columns of a result that one weight makes.
MatrixView columns_of(const Tensor& joined, std::int64_t begin, std::int64_t count) {
  MatrixView view = MatrixView::flat(joined);
  view.offset += begin;
  view.columns = count;
  return view;
}

struct JoinedLinear final : Node {
  Tensor x;                          // [..., in], for the weights' gradients
  std::pmr::vector<Tensor> weights;  // [n_i, in], for the input's

  JoinedLinear(Tensor input, std::pmr::vector<Tensor> matrices) : x(std::move(input)), weights(std::move(matrices)) {}
  std::string_view name() const override { return "joined_linear"; }
  std::vector<Saved> saved() const override {
    std::vector<Saved> all{{"x", x}};
    for (const Tensor& weight : weights) all.push_back({"weight", weight});
    return all;
  }
  void backward(Step& step, Backward& pass) override {
    const Tensor dy = as_operand(step, pass.output_grad(), x);
    const auto count = static_cast<int>(weights.size());
    const Target dx = pass.input_grad(0);
    std::int64_t begin = 0;
    for (int i = 0; i < count; ++i) {
      const Tensor& weight = weights[static_cast<std::size_t>(i)];
      const MatrixView part = columns_of(dy, begin, weight.shape()[0]);
      begin += part.columns;
      if (dx)
        kernels::matmul(step, part, Transpose::no, MatrixView::of(weight), Transpose::no, MatrixView::flat(dx.tensor),
                        1, 1.0, i == 0 ? dx.write : Write::add);
      if (Target dweight = pass.input_grad(1 + i))
        kernels::matmul(step, part, Transpose::yes, MatrixView::flat(x), Transpose::no, MatrixView::of(dweight.tensor),
                        1, 1.0, dweight.write);
    }
    bias_gradients(step, pass);
  }
  void bias_gradients(Step& step, Backward& pass) {
    const auto count = static_cast<int>(weights.size());
    bool wanted = false;
    for (int i = 0; i < count; ++i) wanted = wanted || pass.wants_grad(1 + count + i);
    if (!wanted) return;
    const Tensor& dy = pass.output_grad();
    Tensor joined = step.empty({dy.shape()[-1]}, dy.dtype());
    kernels::bias_backward(step, dy, {joined, Write::set});
    std::int64_t begin = 0;
    for (int i = 0; i < count; ++i) {
      const std::int64_t size = weights[static_cast<std::size_t>(i)].shape()[0];
      if (Target dbias = pass.input_grad(1 + count + i))
        kernels::accumulate(step, joined.rows(begin, begin + size), 1.0, dbias);
      begin += size;
    }
  }
};

}  // namespace

Variable joined_linear(const Variable& x, std::span<const Variable> weights, std::span<const Variable> biases) {
  if (weights.empty() || biases.size() != weights.size())
    throw ShapeError(text("joined_linear: there must be weights, and a bias for each, got ", weights.size(), " and ",
                          biases.size()));
  Step& step = x.tape().step();
  const DType dtype = compute_dtype(x.dtype());
  std::pmr::vector<Tensor> kept(step.objects());
  std::pmr::vector<Variable> inputs(step.objects());
  inputs.push_back(x);
  std::int64_t size = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Shape& shape = weights[i].shape();
    if (shape.rank() != 2 || x.shape().rank() < 1 || x.shape()[-1] != shape[1])
      throw ShapeError(
          text("joined_linear: x must be [..., in] and every weight [n, in], got ", x.shape(), " and ", shape));
    check_dtype("joined_linear", "weight", weights[i].value(), x.dtype());
    check_same_device("joined_linear", x.value(), weights[i].value());
    check_shape("joined_linear", "bias", biases[i].value(), {shape[0]});
    check_dtype("joined_linear", "bias", biases[i].value(), dtype);
    kept.push_back(weights[i].value());
    inputs.push_back(weights[i]);
    size += shape[0];
  }
  for (const Variable& bias : biases) inputs.push_back(bias);

  Tensor y = step.empty(x.shape().with(-1, size), dtype);
  Tensor joined_bias = step.empty({size}, dtype);
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::int64_t rows = weights[i].shape()[0];
    kernels::matmul(step, MatrixView::flat(x.value()), Transpose::no, MatrixView::of(weights[i].value()),
                    Transpose::yes, columns_of(y, begin, rows), 1, 1.0, Write::set);
    kernels::copy_runs(step, biases[i].value(), {.offset = 0, .stride = rows}, {joined_bias, Write::set},
                       {.offset = begin, .stride = rows}, 1, rows);
    begin += rows;
  }
  kernels::bias_forward(step, joined_bias, y);
  return x.tape().record(JoinedLinear{x.value(), std::move(kept)}, inputs, std::move(y));
}

}  // namespace engram
