#include "autograd/functions/dropout.hpp"

#include <string_view>

#include "autograd/functions/dropout_rule.hpp"
#include "autograd/tape.hpp"
#include "core/check.hpp"
#include "core/kernels/dropout.hpp"

namespace engram {
namespace {

struct Dropout final : Node {
  RandomStream random;
  DropoutRule rule;

  Dropout(RandomStream stream, DropoutRule dropout_rule) : random(stream), rule(dropout_rule) {}
  std::string_view name() const override { return "dropout"; }
  void backward(Step& step, Backward& pass) override {
    if (Target dx = pass.input_grad(0)) kernels::dropout(step, pass.output_grad(), random, rule, dx);
  }
};

struct VariationalDropout final : Node {
  RandomStream random;
  DropoutRule rule;
  Shape streams;  // [B, M, n]

  VariationalDropout(RandomStream stream, DropoutRule dropout_rule, Shape shape)
      : random(stream), rule(dropout_rule), streams(shape) {}
  std::string_view name() const override { return "variational_dropout"; }
  void backward(Step& step, Backward& pass) override {
    if (Target dx = pass.input_grad(0))
      kernels::variational_dropout(step, pass.output_grad().view(streams), random, rule,
                                   {dx.tensor.view(streams), dx.write});
  }
};

struct WordDropout final : Node {
  RandomStream random;
  DropoutRule rule;
  Tensor ids;  // [R]
  Shape flat;  // [R, n]

  WordDropout(RandomStream stream, DropoutRule dropout_rule, Tensor id, Shape shape)
      : random(stream), rule(dropout_rule), ids(std::move(id)), flat(shape) {}
  std::string_view name() const override { return "word_dropout"; }
  std::vector<Saved> saved() const override { return {{"ids", ids}}; }
  void backward(Step& step, Backward& pass) override {
    if (Target dx = pass.input_grad(0))
      kernels::word_dropout(step, pass.output_grad().view(flat), ids, random, rule, {dx.tensor.view(flat), dx.write});
  }
};

}  // namespace

Variable dropout(const Variable& x, double rate) {
  const DropoutRule rule = dropout_rule("dropout", rate);
  if (!x.tape().training() || !rule.active()) return x;
  Step& step = x.tape().step();
  const RandomStream random = step.next_random();
  Tensor y = step.empty(x.shape(), x.dtype());
  kernels::dropout(step, x.value(), random, rule, {y, Write::set});
  return x.tape().record(Dropout{random, rule}, {x}, std::move(y));
}

Variable variational_dropout(const Variable& x, double rate) {
  const DropoutRule rule = dropout_rule("variational_dropout", rate);
  const Shape& shape = x.shape();
  if (shape.rank() < 2) throw ShapeError(text("variational_dropout: x must be [..., time, n], got ", shape));
  if (!x.tape().training() || !rule.active()) return x;
  Step& step = x.tape().step();
  const RandomStream random = step.next_random();
  std::int64_t streams = 1;
  for (int axis = 0; axis < shape.rank() - 2; ++axis) streams *= shape[axis];
  const Shape flat{streams, shape[-2], shape[-1]};
  Tensor y = step.empty(shape, x.dtype());
  kernels::variational_dropout(step, x.value().view(flat), random, rule, {y.view(flat), Write::set});
  return x.tape().record(VariationalDropout{random, rule, flat}, {x}, std::move(y));
}

Variable word_dropout(const Variable& x, const Tensor& ids, double rate) {
  const DropoutRule rule = dropout_rule("word_dropout", rate);
  const Shape& shape = x.shape();
  bool fits = ids && shape.rank() == ids.shape().rank() + 1;
  for (int axis = 0; fits && axis < ids.shape().rank(); ++axis) fits = shape[axis] == ids.shape()[axis];
  if (!fits)
    throw ShapeError(text("word_dropout: x must be [ids..., n], got x ", shape, " and ids ",
                          ids ? text(ids.shape()) : std::string("none")));
  check_dtype("word_dropout", "the ids", ids, DType::i32);
  check_same_device("word_dropout", x.value(), ids);
  if (!x.tape().training() || !rule.active()) return x;
  Step& step = x.tape().step();
  const RandomStream random = step.next_random();
  const Tensor id = ids.view({ids.count()});
  const Shape flat{ids.count(), shape[-1]};
  Tensor y = step.empty(shape, x.dtype());
  kernels::word_dropout(step, x.value().view(flat), id, random, rule, {y.view(flat), Write::set});
  return x.tape().record(WordDropout{random, rule, id, flat}, {x}, std::move(y));
}

}  // namespace engram
