#include "nn/layers/self_attention.hpp"

#include <array>
#include <cmath>

#include "autograd/functions/add.hpp"
#include "autograd/functions/concat.hpp"
#include "autograd/functions/linear.hpp"
#include "autograd/functions/slice.hpp"
#include "autograd/tape.hpp"
#include "nn/init.hpp"

namespace engram {
namespace {

Initializer matrix_start(const SelfAttentionOptions& options) {
  return options.start == AttentionStart::root ? init::uniform_root(options.width)
                                               : init::uniform_fan_in(options.width);
}

}  // namespace

SelfAttention::SelfAttention(const SelfAttentionOptions& options)
    : options_(options),
      context_heads_(static_cast<int>(context_heads(options.mode, options.heads))),
      query_({options.width, options.width}, matrix_start(options)),
      key_({options.width, options.width}, matrix_start(options)),
      value_({options.width, options.width}, matrix_start(options)),
      output_({options.width, options.width}, matrix_start(options)),
      span_(context_heads_, options.width, options.span, options.heads) {
  const std::int64_t heads = options.mode == MemoryMode::single_head  ? 1
                             : options.mode == MemoryMode::head_split ? options.heads - context_heads_
                                                                      : options.heads;
  const std::int64_t depth = options.width / (options.mode == MemoryMode::single_head ? 1 : options.heads);
  if (has_slots(options.mode)) persistent_.emplace(heads, options.slots, depth);
}

Variable SelfAttention::forward(const Variable& x, AttentionPast& past, const PositionTables& positions,
                                AttentionTrace* trace) {
  Tape& tape = x.tape();
  const Variable query = linear(x, tape.parameter(query_));
  const auto attend_slots = [&](const Variable& queries) {
    return persistent_->attend(queries, options_.dropout, options_.keep_bytes, trace);
  };
  Variable mixed;
  if (options_.mode == MemoryMode::head_split) {
    const std::int64_t width = options_.width, border = context_heads_ * (width / options_.heads);
    const Variable seen = attend_context(x, slice(query, 2, 0, border), past, positions, trace);
    const Variable known = attend_slots(slice(query, 2, border, width));
    mixed = concat(std::array{seen, known}, 2);
  } else {
    mixed = attend_context(x, query, past, positions, trace);
    if (persistent_ && options_.mode != MemoryMode::all) mixed = add(mixed, attend_slots(query));
  }
  return linear(mixed, tape.parameter(output_));
}

Variable SelfAttention::attend_context(const Variable& x, const Variable& query, AttentionPast& past,
                                       const PositionTables& positions, AttentionTrace* trace) {
  Tape& tape = x.tape();
  const SpanOptions& span = span_.options();
  const Variable key_weight = context_rows(tape.parameter(key_)), value_weight = context_rows(tape.parameter(value_));
  AttentionVariables in;
  in.content_query = query;
  in.keys = linear(x, key_weight);
  in.values = linear(x, value_weight);
  in.position_keys = positions.keys;
  in.position_values = positions.values;
  in.span = span_.forward(x);
  AttentionOptions options;
  options.heads = context_heads_;
  const std::int64_t depth = options_.width / options_.heads;
  options.score_scale = 1.0 / std::sqrt(static_cast<double>(depth));
  options.max_distance = static_cast<int>(span.max_span);
  options.ramp = span.kind == SpanKind::fixed ? 0 : span.ramp;
  options.mask_offset = span.mask_offset;
  options.ramp_gradient = span.ramp_gradient;
  options.dropout = DropoutRule(options_.dropout);
  options.windows = span_.windows();
  if (options_.mode == MemoryMode::all) persistent_->join(tape, in, options);
  past.read(tape, key_weight, value_weight, in, options);
  const AttentionResult result = traced_attention(in, options, options_.keep_bytes, trace);
  past.update(tape.step(), x.value(), in.keys.value(), in.values.value());
  if (trace != nullptr) trace->span = in.span;
  return result.out;
}

Variable SelfAttention::context_rows(const Variable& weight) const {
  if (context_heads_ == options_.heads) return weight;
  return slice(weight, 0, 0, context_heads_ * (options_.width / options_.heads));
}

void SelfAttention::visit(Visitor& visit) {
  visit("query", query_);
  visit("key", key_);
  visit("value", value_);
  visit("output", output_);
  span_.visit(visit);
  if (persistent_) persistent_->visit(visit);
}

}  // namespace engram
