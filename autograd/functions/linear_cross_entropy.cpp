#include "autograd/functions/linear_cross_entropy.hpp"

#include <algorithm>
#include <utility>

#include "autograd/functions/as_operand.hpp"
#include "autograd/functions/check_ids.hpp"
#include "autograd/tape.hpp"
#include "core/check.hpp"
#include "core/error.hpp"
#include "core/kernels/bias.hpp"
#include "core/kernels/copy.hpp"
#include "core/kernels/cross_entropy.hpp"
#include "core/kernels/fill.hpp"
#include "core/kernels/linear_cross_entropy.hpp"
#include "core/kernels/matmul.hpp"

namespace engram {
namespace {

using kernels::Transpose;

/// Where the gradient of an input is summed: a parameter's own memory, or memory that backward hands over.
struct FinalGradient {
  FinalGradient(Step& step, const Variable& input) {
    if (!input.requires_grad() || !input.tape().training()) return;
    target = input.tape().final_gradient(input);
    if (target) return;
    given = step.empty(input.shape(), input.tape().gradient_dtype(input));
    target = {given, Write::set};
  }
  /// For the next block: what comes after the first is added.
  Target next() { return {target.tensor, std::exchange(target.write, Write::add)}; }
  explicit operator bool() const { return static_cast<bool>(target); }

  Target target;
  Tensor given;  // absent for parameters
};

struct LinearCrossEntropyNode final : Node {
  Tensor dx, dweight, dbias;  // absent: not wanted, or a parameter's

  LinearCrossEntropyNode(Tensor x_gradient, Tensor weight_gradient, Tensor bias_gradient)
      : dx(std::move(x_gradient)), dweight(std::move(weight_gradient)), dbias(std::move(bias_gradient)) {}
  std::string_view name() const override { return "linear_cross_entropy"; }
  std::vector<Saved> saved() const override {
    std::vector<Saved> all;
    if (dx) all.push_back({"dx", dx});
    if (dweight) all.push_back({"dweight", dweight});
    if (dbias) all.push_back({"dbias", dbias});
    return all;
  }
  void backward(Step&, Backward& pass) override {
    if (!pass.output_is_root())
      throw Error(
          "linear_cross_entropy: the loss must be a root of backward, got a loss that another operation uses\n"
          "  its gradients were made in the forward pass: put factors into row_weight and call backward({loss, ...})");
    if (dx) pass.give(0, std::move(dx));
    if (dweight) pass.give(1, std::move(dweight));
    if (dbias) pass.give(2, std::move(dbias));
  }
};

void check(const Variable& x, const Variable& weight, const Variable& bias, const Tensor& targets,
           const Tensor& row_weight, std::int64_t rows) {
  constexpr std::string_view kOp = "linear_cross_entropy";
  if (weight.shape().rank() != 2 || x.shape().rank() < 1 || x.shape()[-1] != weight.shape()[1])
    throw ShapeError(text(kOp, ": x must be [..., n] and weight [V, n], got ", x.shape(), " and ", weight.shape()));
  const DType summed = compute_dtype(x.dtype());
  check_dtype(kOp, "weight", weight.value(), x.dtype());
  check_shape(kOp, "bias", bias.value(), {weight.shape()[0]});
  check_dtype(kOp, "bias", bias.value(), summed);
  const std::int64_t count = x.shape().rows();
  check_shape(kOp, "targets", targets, {count});
  check_dtype(kOp, "targets", targets, DType::i32);
  check_shape(kOp, "row_weight", row_weight, {count});
  check_dtype(kOp, "row_weight", row_weight, summed);
  for (const Tensor& other : {weight.value(), bias.value(), targets, row_weight})
    check_same_device(kOp, x.value(), other);
  if (rows < 1) throw Error(text(kOp, ": a block must have at least 1 row, got ", rows));
}

/// The rows [begin, end) as one matrix.
MatrixView block_of(const Tensor& tensor, std::int64_t begin, std::int64_t end) {
  MatrixView view = MatrixView::flat(tensor);
  view.offset += begin * view.row_stride;
  view.rows = end - begin;
  return view;
}

struct Operands {
  const Tensor &x, &weight, &bias, &targets, &row_weight;
};

/// Of the kernels of its parts, block by block.
void compose(Step& step, const Operands& in, std::int64_t rows, FinalGradient& dx, FinalGradient& dweight,
             FinalGradient& dbias, Tensor& row_loss, Tensor& loss) {
  const std::int64_t count = in.x.shape().rows(), vocabulary = in.weight.shape()[0];
  const DType dtype = compute_dtype(in.x.dtype());
  const bool gradient = dx || dweight || dbias;
  kernels::fill(step, loss, 0.0);
  Tensor memory = step.empty({std::min(rows, count), vocabulary}, dtype);
  Tensor block_loss = step.empty({1}, dtype);
  for (std::int64_t begin = 0; begin < count; begin += rows) {
    const std::int64_t end = std::min(begin + rows, count);
    const MatrixView block = block_of(in.x, begin, end), weights = MatrixView::of(in.weight);
    Tensor logits = memory.rows(0, end - begin), losses = row_loss.rows(begin, end);
    kernels::matmul(step, block, Transpose::no, weights, Transpose::yes, MatrixView::of(logits), 1, 1.0, Write::set);
    kernels::bias_forward(step, in.bias, logits);
    kernels::cross_entropy(step, logits, in.targets.rows(begin, end), in.row_weight.rows(begin, end), gradient, losses,
                           block_loss);
    kernels::accumulate(step, block_loss, 1.0, {loss, Write::add});
    if (!gradient) continue;
    if (const Target to = dbias.next()) kernels::bias_backward(step, logits, to);
    const MatrixView dy = MatrixView::of(as_operand(step, logits, in.x));
    if (dx)
      kernels::matmul(step, dy, Transpose::no, weights, Transpose::no, block_of(dx.target.tensor, begin, end), 1, 1.0,
                      dx.target.write);
    if (const Target to = dweight.next())
      kernels::matmul(step, dy, Transpose::yes, block, Transpose::no, MatrixView::of(to.tensor), 1, 1.0, to.write);
  }
}

}  // namespace

LinearCrossEntropy linear_cross_entropy(const Variable& x, const Variable& weight, const Variable& bias,
                                        const Tensor& targets, const Tensor& row_weight, std::int64_t rows) {
  check(x, weight, bias, targets, row_weight, rows);
  Step& step = x.tape().step();
  const std::int64_t count = x.shape().rows(), vocabulary = weight.shape()[0];
  const DType dtype = compute_dtype(x.dtype());
  check_ids("linear_cross_entropy", "targets", step, targets, vocabulary);

  FinalGradient dx(step, x), dweight(step, weight), dbias(step, bias);
  Tensor row_loss = step.empty({count}, dtype), loss = step.empty({1}, dtype);
  if (count == 0) {
    kernels::fill(step, loss, 0.0);
    kernels::clear_if_set(step, dweight.target);
    kernels::clear_if_set(step, dbias.target);
  }
  // The one kernel, where there is one, knows no matrices of bf16.
  else if (kernels::linear_cross_entropy.available(step.device().kind) && x.dtype() == dtype) {
    kernels::linear_cross_entropy(step, x.value(), weight.value(), bias.value(), targets, row_weight, rows, row_loss,
                                  loss, {dx.target, dweight.target, dbias.target});
  } else {
    compose(step, {x.value(), weight.value(), bias.value(), targets, row_weight}, rows, dx, dweight, dbias, row_loss,
            loss);
  }
  Variable total =
      x.tape().record(LinearCrossEntropyNode{std::move(dx.given), std::move(dweight.given), std::move(dbias.given)},
                      {x, weight, bias}, std::move(loss));
  return {std::move(total), std::move(row_loss)};
}

}  // namespace engram
