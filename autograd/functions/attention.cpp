#include "autograd/functions/attention.hpp"

#include <array>
#include <iterator>

#include "autograd/tape.hpp"
#include "core/check.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

constexpr std::size_t kInputs = std::size(kAttentionOperands<Variable>);

struct Attention final : Node {
  AttentionInputs in;
  AttentionOptions options;
  RandomStream random;  // the same stream again: no mask is stored
  Tensor out;           // [B, M, H D]
  Tensor lse;           // [B, H, M]
  Tensor kept;          // weights; empty: computed again from lse

  std::string_view name() const override { return "attention"; }
  std::vector<Saved> saved() const override {
    std::vector<Saved> all;
    for (const auto& [name, member] : kAttentionOperands<Tensor>) all.push_back({name, in.*member});
    all.insert(all.end(), {{"out", out}, {"lse", lse}, {"kept", kept}});
    return all;
  }
  void backward(Step& step, Backward& pass) override {
    AttentionGradients gradients;
    for (std::size_t i = 0; i < kInputs; ++i)
      gradients.*kAttentionOperands<Target>[i].member = pass.separate_grad(static_cast<int>(i));
    kernels::attention_backward(step, in, options, random, out, lse, kept, pass.output_grad(), gradients);
  }
};

void check_pair(std::string_view what, const Variable& keys, const Variable& values) {
  if (static_cast<bool>(keys) != static_cast<bool>(values) || (keys && keys.shape() != values.shape()))
    throw ShapeError(text("attention: ", what, " keys and values must come together with one shape, got ", keys.shape(),
                          " and ", values.shape()));
}

// Position tables: a row for every distance of the longest window.
void check_positions(std::string_view what, const Variable& table, const AttentionOptions& options,
                     const Shape& query) {
  if (!table) return;
  const Shape& shape = table.shape();
  const std::int64_t rows = options.windows.longest + 1 - options.min_distance, depth = query[2] / options.heads;
  if (shape.rank() != 2 || shape[0] < rows || (shape[1] != depth && shape[1] != query[2]))
    throw ShapeError(
        text("attention: ", what, " must be [P, D] or [P, H D] with P >= ", rows, " and D = ", depth, ", got ", shape));
}

void check_inputs(const AttentionVariables& in, const AttentionOptions& options) {
  const Shape& query = in.content_query.shape();
  if (query.rank() != 3 || options.heads < 1 || query[2] % options.heads != 0)
    throw ShapeError(text("attention: the query must be [B, M, H D] with H = ", options.heads, ", got ", query));
  if (options.min_distance < 0 || options.min_distance > 1 || options.max_distance < 0 || options.ramp < 0)
    throw ShapeError(text("attention: needs min_distance 0 or 1, max_distance >= 0 and ramp >= 0, got ",
                          options.min_distance, ", ", options.max_distance, " and ", options.ramp));
  const std::int64_t heads = options.heads, depth = query[2] / heads;
  check_pair("block", in.keys, in.values);
  check_pair("past", in.past_keys, in.past_values);
  check_pair("slot", in.slot_keys, in.slot_values);
  if (in.position_query) check_shape("attention", "position query", in.position_query.value(), query);
  if (in.span && in.span.shape() != Shape{heads} && in.span.shape() != Shape{query[0], query[1], heads})
    throw ShapeError(text("attention: span must be [H] = [", heads, "] or, for a span of every query, [B, M, H] = ",
                          Shape{query[0], query[1], heads}, ", got ", in.span.shape()));
  if (in.slot_keys &&
      (in.slot_keys.shape().rank() != 3 || in.slot_keys.shape()[0] != heads || in.slot_keys.shape()[2] != depth))
    throw ShapeError(text("attention: persistent slots must be [H, N, D] = [", heads, ", N, ", depth, "], got ",
                          in.slot_keys.shape()));
  if (options.max_distance == 0) {
    if (!in.slot_keys)
      throw ShapeError("attention: needs a context (max_distance > 0) or persistent slots, got neither");
    if (in.keys || in.past_keys || in.position_keys || in.position_values || in.span)
      throw ShapeError("attention: max_distance 0 takes persistent slots only, got keys, positions or a span as well");
    return;
  }
  if (options.past_count < 0) throw ShapeError(text("attention: needs past_count >= 0, got ", options.past_count));
  const HeadWindows& windows = options.windows;
  if (windows.heads() != options.heads || windows.longest > options.max_distance)
    throw ShapeError(text("attention: needs one window per head, none above max_distance ", options.max_distance,
                          ", got ", windows.heads(), " windows for ", heads, " heads, the longest ", windows.longest));
  check_shape("attention", "keys", in.keys.value(), query);
  if (windows.total > 0 || in.past_keys)
    check_shape("attention", "past keys", in.past_keys.value(), {query[0] * windows.total, depth});
  check_positions("position keys", in.position_keys, options, query);
  check_positions("position values", in.position_values, options, query);
  if (in.past_valid) {
    check_shape("attention", "past_valid", in.past_valid, {query[0]});
    check_dtype("attention", "past_valid", in.past_valid, DType::i32);
  }
}

}  // namespace

AttentionResult attention(const AttentionVariables& in, const AttentionOptions& options, std::int64_t keep_bytes) {
  check_inputs(in, options);
  const DType dtype = in.content_query.dtype();
  std::array<Variable, kInputs> inputs;
  Attention node;
  for (std::size_t i = 0; i < kInputs; ++i) {
    const Variable& input = inputs[i] = in.*kAttentionOperands<Variable>[i].member;
    if (!input) continue;
    const bool is_vector = i + 1 == kInputs;  // the span
    check_dtype("attention", "every input", input.value(), is_vector ? compute_dtype(dtype) : dtype);
    check_same_device("attention", in.content_query.value(), input.value());
    node.in.*kAttentionOperands<Tensor>[i].member = input.value();
  }
  Tape& tape = in.content_query.tape();
  Step& step = tape.step();
  const Shape& query = in.content_query.shape();
  node.in.past_valid = in.past_valid;
  node.options = options;
  if (!tape.training()) node.options.dropout = {};
  if (node.options.dropout.active()) node.random = step.next_random();
  node.out = step.empty(query, dtype);
  node.lse = step.empty({query[0], options.heads, query[1]}, compute_dtype(dtype));
  const std::int64_t kept = kept_weights_count(node.in, options);
  const bool for_backward = tape.training() && step.backend().keeps_attention() &&
                            kept * static_cast<std::int64_t>(size_of(node.out.dtype())) <= keep_bytes;
  if (for_backward || keep_bytes == kKeepWeights) node.kept = step.empty({kept}, node.out.dtype());
  kernels::attention_forward(step, node.in, node.options, node.random, node.out, node.lse, node.kept);
  Tensor out = node.out, lse = node.lse, kept_weights = node.kept;
  Variable result = tape.record(std::move(node), inputs, std::move(out));
  return {std::move(result), std::move(lse), std::move(kept_weights)};
}

}  // namespace engram
