#include "autograd/functions/window_attention_dot.hpp"

#include "autograd/functions/as_operand.hpp"
#include "autograd/functions/window_inputs.hpp"
#include "autograd/tape.hpp"
#include "core/check.hpp"
#include "core/error.hpp"
#include "core/kernels/matmul.hpp"
#include "core/kernels/window_attention_dot.hpp"
#include "core/kernels/window_rows.hpp"

namespace engram {
namespace {

constexpr const char* kDotName = "window_attention_dot";

struct WindowAttentionDot final : Node {
  Tensor keys, queries, values, position_keys, position_values, preceding;
  Tensor weights;  // [B, M, L]
  WindowRule rule;

  std::string_view name() const override { return kDotName; }
  std::vector<Saved> saved() const override {
    return {{"keys", keys},
            {"queries", queries},
            {"values", values},
            {"position_keys", position_keys},
            {"position_values", position_values},
            {"preceding", preceding},
            {"weights", weights}};
  }
  void backward(Step& step, Backward& pass) override {
    const Tensor& dy = pass.output_grad();
    if (Target dvalues = pass.input_grad(2)) kernels::window_row_gradients(step, weights, dy, preceding, rule, dvalues);
    if (Target dpositions = pass.input_grad(4)) add_to_columns(step, weights, dy, dpositions);
    if (!pass.wants_grad(0) && !pass.wants_grad(1) && !pass.wants_grad(3)) return;
    Tensor dscores = step.empty(weights.shape(), weights.dtype());
    kernels::window_score_gradients(step, weights, values, position_values, dy, preceding, rule, dscores);
    if (Target dkeys = pass.input_grad(0))
      kernels::window_row_gradients(step, dscores, queries, preceding, rule, dkeys);
    if (Target dqueries = pass.input_grad(1))
      kernels::window_sums(step, dscores, keys, position_keys, preceding, rule, dqueries);
    if (Target dpositions = pass.input_grad(3)) add_to_columns(step, dscores, queries, dpositions);
  }
  /// gradient[column, :] = sum over all positions of of_columns[b, t, column] vectors[b, t, :]: a product.
  static void add_to_columns(Step& step, const Tensor& of_columns, const Tensor& vectors, const Target& gradient) {
    kernels::matmul(step, MatrixView::flat(as_operand(step, of_columns, vectors)), kernels::Transpose::yes,
                    MatrixView::flat(vectors), kernels::Transpose::no, MatrixView::of(gradient.tensor), 1, 1.0,
                    gradient.write);
  }
};

}  // namespace

WindowedResult window_attention_dot(const Variable& keys, const Variable& queries, const Variable& values,
                                    const Variable& position_keys, const Variable& position_values,
                                    const Tensor& preceding, std::int64_t window) {
  const Shape& block = queries.shape();
  if (block.rank() != 3) throw ShapeError(text(kDotName, ": the queries must be [B, M, k], got ", block));
  const std::int64_t streams = block[0], positions = block[1], width = block[2];
  WindowRule rule = window_rule(kDotName, "the keys", keys, {streams, positions}, preceding, window);
  rule.with_present = true;
  check_shape(kDotName, "the keys", keys.value(), {streams, rule.rows(), width});
  check_value_rows(kDotName, keys, values);
  const std::int64_t value_width = values.shape()[2];
  if (position_keys) check_shape(kDotName, "the position keys", position_keys.value(), {window, width});
  if (position_values) check_shape(kDotName, "the position values", position_values.value(), {window, value_width});
  for (const Variable* input : {&keys, &values, &position_keys, &position_values}) {
    if (!*input) continue;
    check_dtype(kDotName, "every input", input->value(), queries.dtype());
    check_same_device(kDotName, queries.value(), input->value());
  }

  Step& step = queries.tape().step();
  WindowAttentionDot node;
  node.keys = keys.value();
  node.queries = queries.value();
  node.values = values.value();
  node.position_keys = position_keys.value();
  node.position_values = position_values.value();
  node.preceding = preceding;
  node.rule = rule;
  node.weights = step.empty({streams, positions, window}, compute_dtype(queries.dtype()));
  kernels::window_dot_weights(step, node.keys, node.position_keys, node.queries, preceding, rule, node.weights);
  Tensor context = step.empty({streams, positions, value_width}, queries.dtype());
  kernels::window_sums(step, node.weights, node.values, node.position_values, preceding, rule, {context, Write::set});
  Tensor weights = node.weights;
  return {queries.tape().record(std::move(node), {keys, queries, values, position_keys, position_values},
                                std::move(context)),
          std::move(weights)};
}

}  // namespace engram
