#include "autograd/functions/window_attention_additive.hpp"

#include "autograd/functions/window_inputs.hpp"
#include "autograd/tape.hpp"
#include "core/check.hpp"
#include "core/error.hpp"
#include "core/kernels/window_attention_additive.hpp"
#include "core/kernels/window_rows.hpp"

namespace engram {
namespace {

constexpr const char* kAdditiveName = "window_attention_additive";

struct WindowAttentionAdditive final : Node {
  Tensor keys, queries, score_vector, values, preceding;
  Tensor weights;  // [B, M, L]
  WindowRule rule;

  std::string_view name() const override { return kAdditiveName; }
  std::vector<Saved> saved() const override {
    return {{"keys", keys},     {"queries", queries},     {"score_vector", score_vector},
            {"values", values}, {"preceding", preceding}, {"weights", weights}};
  }
  void backward(Step& step, Backward& pass) override {
    const Tensor& dy = pass.output_grad();
    if (Target dvalues = pass.input_grad(3)) kernels::window_row_gradients(step, weights, dy, preceding, rule, dvalues);
    if (!pass.wants_grad(0) && !pass.wants_grad(1) && !pass.wants_grad(2)) return;
    Tensor dscores = step.empty(weights.shape(), weights.dtype());
    kernels::window_score_gradients(step, weights, values, {}, dy, preceding, rule, dscores);
    kernels::window_additive_gradients(step, keys, queries, score_vector, dscores, preceding, rule,
                                       {pass.separate_grad(0), pass.separate_grad(1), pass.separate_grad(2)});
  }
};

}  // namespace

WindowedResult window_attention_additive(const Variable& keys, const Variable& queries, const Variable& score_vector,
                                         const Variable& values, const Tensor& preceding,
                                         const AdditiveWindow& options) {
  const Shape& block = queries.shape();
  if (block.rank() != 3) throw ShapeError(text(kAdditiveName, ": the queries must be [B, M, d], got ", block));
  const std::int64_t streams = block[0], positions = block[1], width = block[2];
  WindowRule rule = window_rule(kAdditiveName, "the keys", keys, {streams, positions}, preceding, options.window);
  rule.count_missing = options.count_missing;
  check_shape(kAdditiveName, "the keys", keys.value(), {streams, rule.rows(), width});
  check_shape(kAdditiveName, "the score vector", score_vector.value(), {width});
  check_value_rows(kAdditiveName, keys, values);
  const DType dtype = queries.dtype();
  check_dtype(kAdditiveName, "the keys", keys.value(), dtype);
  check_dtype(kAdditiveName, "the values", values.value(), dtype);
  check_dtype(kAdditiveName, "the score vector", score_vector.value(), compute_dtype(dtype));
  for (const Variable* other : {&keys, &score_vector, &values})
    check_same_device(kAdditiveName, queries.value(), other->value());

  Step& step = queries.tape().step();
  WindowAttentionAdditive node;
  node.keys = keys.value();
  node.queries = queries.value();
  node.score_vector = score_vector.value();
  node.values = values.value();
  node.preceding = preceding;
  node.rule = rule;
  node.weights = step.empty({streams, positions, rule.window}, compute_dtype(dtype));
  kernels::window_additive_weights(step, node.keys, node.queries, node.score_vector, preceding, rule, node.weights);
  Tensor context = step.empty({streams, positions, values.shape()[2]}, dtype);
  kernels::window_sums(step, node.weights, node.values, {}, preceding, rule, {context, Write::set});
  Tensor weights = node.weights;
  return {queries.tape().record(std::move(node), {keys, queries, score_vector, values}, std::move(context)),
          std::move(weights)};
}

}  // namespace engram
