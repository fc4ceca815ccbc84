#include "autograd/functions/cross_entropy.hpp"

#include "autograd/functions/check_ids.hpp"
#include "autograd/tape.hpp"
#include "core/check.hpp"
#include "core/error.hpp"
#include "core/kernels/cross_entropy.hpp"

namespace engram {
namespace {

struct CrossEntropyNode final : Node {
  Tensor gradient;  // [R, V], in the memory of the logits

  explicit CrossEntropyNode(Tensor logits_gradient) : gradient(std::move(logits_gradient)) {}
  std::string_view name() const override { return "cross_entropy"; }
  std::vector<Saved> saved() const override { return {{"gradient", gradient}}; }
  void backward(Step&, Backward& pass) override {
    if (!pass.output_is_root())
      throw Error(
          "cross_entropy: the loss must be a root of backward, got a loss that another operation uses\n"
          "  its gradient was made in the forward pass: put factors into row_weight and call backward({loss, ...})");
    pass.give(0, std::move(gradient));
  }
};

}  // namespace

CrossEntropy cross_entropy(Variable logits, const Tensor& targets, const Tensor& row_weight) {
  if (logits.shape().rank() < 1 || logits.shape()[-1] < 1)
    throw ShapeError(text("cross_entropy: logits must be [..., V], got ", logits.shape()));
  if (logits.dtype() == DType::bf16)
    throw DTypeError(
        "cross_entropy: logits must be f32 or f64, got bf16\n"
        "  linear(x, weight, bias, ProductResult::summed) gives f32 logits of bf16 operands");
  const std::int64_t rows = logits.shape().rows();
  check_shape("cross_entropy", "targets", targets, {rows});
  check_dtype("cross_entropy", "targets", targets, DType::i32);
  check_shape("cross_entropy", "row_weight", row_weight, {rows});
  check_dtype("cross_entropy", "row_weight", row_weight, logits.dtype());
  check_same_device("cross_entropy", logits.value(), targets);
  check_same_device("cross_entropy", logits.value(), row_weight);
  if (const long holders = logits.value().use_count(); holders != 1)
    throw Error(text("cross_entropy: nobody else may hold the logits, which are overwritten, got ", holders,
                     " holders\n  pass the result of the last layer with std::move, on a tape of inference too, and "
                     "keep no view of it;\n  copy before what you need of them, by host_doubles()"));
  Step& step = logits.tape().step();
  check_ids("cross_entropy", "targets", step, targets, logits.shape()[-1]);

  Tensor values = logits.value().view({rows, logits.shape()[-1]});
  Tensor row_loss = step.empty({rows}, logits.dtype());
  Tensor loss = step.empty({1}, logits.dtype());
  const bool gradient = logits.requires_grad() && logits.tape().training();
  kernels::cross_entropy(step, values, targets, row_weight, gradient, row_loss, loss);
  Variable total = logits.tape().record(CrossEntropyNode{std::move(values)}, {logits}, std::move(loss));
  return {std::move(total), std::move(row_loss)};
}

}  // namespace engram
