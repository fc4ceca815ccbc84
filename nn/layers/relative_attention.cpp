#include "nn/layers/relative_attention.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "autograd/functions/add_bias.hpp"
#include "autograd/functions/concat.hpp"
#include "autograd/functions/embedding.hpp"
#include "autograd/functions/linear.hpp"
#include "autograd/functions/reshape.hpp"
#include "autograd/functions/scale.hpp"
#include "autograd/functions/slice.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "core/kernels/fill.hpp"
#include "nn/init.hpp"
#include "nn/visitor.hpp"

namespace engram {
namespace {

/// Another number behind the `depth` of every head: x [..., H depth] or [R, depth] -> [..., H (depth + 1)].
Variable widen(const Variable& x, std::int64_t depth, const Variable& numbers) {
  const std::int64_t rows = x.shape().count() / depth;
  const std::array parts{reshape(x, {rows, depth}), numbers};
  const Variable wide = concat(parts, 1);
  return reshape(wide, x.shape().with(-1, x.shape()[-1] / depth * (depth + 1)));
}
Variable widen(const Variable& x, std::int64_t depth, double number) {
  Tape& tape = x.tape();
  Tensor numbers = tape.step().empty({x.shape().count() / depth, 1}, x.dtype());
  kernels::fill(tape.step(), numbers, number);
  return widen(x, depth, tape.constant(std::move(numbers)));
}

/// The first columns of a block, which its past takes in.
Tensor columns(Tape& tape, const Tensor& block, std::int64_t count) {
  return count == block.shape()[1] ? block : slice(tape.constant(block), 1, 0, count).value();
}

}  // namespace

RelativeAttention::RelativeAttention(const RelativeAttentionOptions& options)
    : heads_(options.heads),
      depth_(options.depth),
      kind_(options.positions),
      dropout_(options.dropout),
      keep_bytes_(options.keep_bytes),
      query_({heads_ * depth_, options.width}, options.start),
      key_({heads_ * depth_, options.width}, options.start),
      value_({heads_ * depth_, options.width}, options.start),
      output_({options.width, heads_ * depth_}, options.start) {
  const Shape bias{heads_ * depth_};
  if (kind_ == PositionKind::relative) {
    position_.emplace(query_.shape(), options.start);
    if (!options.own_biases) return;
    content_bias_.emplace(bias, options.start);
    position_bias_.emplace(bias, options.start);
  } else if (kind_ == PositionKind::shaw) {
    distance_keys_.emplace(Shape{options.position_rows, heads_ * depth_}, options.start);
    if (options.shaw_terms == ShawTerms::ab) return;
    content_bias_.emplace(bias, options.start);
    distance_biases_.emplace(Shape{options.position_rows, heads_}, init::zeros());
  }
}

Variable RelativeAttention::forward(const Variable& x, LayerNorm* norm, SegmentPast& past,
                                    const RelativePositions& positions, AttentionTrace* trace) {
  Tape& tape = x.tape();
  const Variable input = norm == nullptr ? x : norm->forward(x);
  const Variable key_weight = tape.parameter(key_), value_weight = tape.parameter(value_);
  AttentionVariables in;
  in.keys = linear(input, key_weight);
  in.values = linear(input, value_weight);
  const Variable query = linear(input, tape.parameter(query_));
  in.content_query = query;
  read_positions(tape, query, past, positions, in);
  if (widened()) {
    in.keys = widen(in.keys, depth_, 0);
    in.values = widen(in.values, depth_, 0);
  }
  AttentionOptions options;
  options.heads = static_cast<int>(heads_);
  options.score_scale = 1.0 / std::sqrt(static_cast<double>(depth_));
  options.min_distance = 0;
  options.windows = past.windows(x.shape()[1]);
  options.max_distance = std::max(1, options.windows.longest);  // 0 would be no context at all
  options.shared_distance = positions.shared;
  options.dropout = DropoutRule(dropout_);
  if (norm == nullptr)
    past.read(tape, key_weight, value_weight, in, options);
  else
    past.read_normalised(
        tape, [norm](const Variable& states) { return norm->forward(states); }, key_weight, value_weight, in, options);
  // States of the past were projected to the depth of the weights.
  if (widened() && in.past_keys && in.past_keys.shape()[1] == depth_) {
    in.past_keys = widen(in.past_keys, depth_, 0);
    in.past_values = widen(in.past_values, depth_, 0);
  }
  const AttentionResult result = traced_attention(in, options, keep_bytes_, trace);
  if (trace != nullptr && trace->keep_results && trace->term)
    trace->alone = attention(one_term(*trace->term, query, positions, in), options, kKeepWeights);
  const std::int64_t taken = positions.remembered;
  past.update(tape.step(), columns(tape, x.value(), taken), columns(tape, in.keys.value(), taken),
              columns(tape, in.values.value(), taken));
  Variable out = result.out;
  if (widened()) {
    const Shape& shape = x.shape();
    const Variable rows = reshape(out, {shape[0] * shape[1] * heads_, depth_ + 1});
    out = reshape(slice(rows, 1, 0, depth_), {shape[0], shape[1], heads_ * depth_});
  }
  return linear(out, tape.parameter(output_));
}

void RelativeAttention::read_positions(Tape& tape, const Variable& query, SegmentPast& past,
                                       const RelativePositions& positions, AttentionVariables& in) {
  if (kind_ != PositionKind::relative && kind_ != PositionKind::shaw) return;
  if (const Variable u = bias(tape, content_bias_, positions.content_bias)) {
    in.content_query = add_bias(query, u);
    in.position_query = query;
  }
  if (const Variable v = bias(tape, position_bias_, positions.position_bias)) in.position_query = add_bias(query, v);
  if (widened()) {
    in.content_query = widen(in.content_query, depth_, 0);
    in.position_query = widen(in.position_query, depth_, 1);
  }
  if (const Tensor kept = past.position_keys(); kept && kept.shape()[0] == positions.distances) {
    in.position_keys = tape.constant(kept);
    return;
  }
  in.position_keys = position_keys(tape, positions);
  past.keep_position_keys(tape.step(), in.position_keys.value());
}

AttentionVariables RelativeAttention::one_term(ScoreTerm term, const Variable& query,
                                               const RelativePositions& positions, AttentionVariables in) {
  if (kind_ != PositionKind::relative)
    throw Error(text("relative attention: terms of scores are those of positions relative, got ", name_of(kind_)));
  Tape& tape = query.tape();
  const Variable nothing = scale(query, 0);
  in.content_query = in.position_query = nothing;
  switch (term) {
    case ScoreTerm::content:
      in.content_query = query;
      break;
    case ScoreTerm::position:
      in.position_query = query;
      break;
    case ScoreTerm::content_bias:
      in.content_query = add_bias(nothing, bias(tape, content_bias_, positions.content_bias));
      break;
    case ScoreTerm::position_bias:
      in.position_query = add_bias(nothing, bias(tape, position_bias_, positions.position_bias));
      break;
  }
  return in;
}

Variable RelativeAttention::position_keys(Tape& tape, const RelativePositions& positions) {
  if (kind_ == PositionKind::relative) {
    const Variable keys = linear(positions.sinusoids, tape.parameter(*position_));
    return positions.rows ? embedding(keys, positions.rows) : keys;
  }
  const Variable keys = embedding(tape.parameter(*distance_keys_), positions.rows);
  if (!widened()) return keys;
  const Variable numbers = embedding(tape.parameter(*distance_biases_), positions.rows);
  return widen(keys, depth_, reshape(numbers, {positions.distances * heads_, 1}));
}

void RelativeAttention::visit(Visitor& visit) {
  visit("query", query_);
  visit("key", key_);
  visit("value", value_);
  if (position_) visit("position", *position_);
  visit("output", output_);
  if (content_bias_) visit("content_bias", *content_bias_);
  if (position_bias_) visit("position_bias", *position_bias_);
  if (distance_keys_) visit("distance_keys", *distance_keys_);
  if (distance_biases_) visit("distance_biases", *distance_biases_);
}

}  // namespace engram
