#include "nn/layers/self_attention.hpp"

#include <cmath>

#include "autograd/functions/attention.hpp"
#include "autograd/functions/linear.hpp"
#include "autograd/tape.hpp"
#include "nn/init.hpp"

namespace engram {

SelfAttention::SelfAttention(std::int64_t width, int heads, std::int64_t slots, double dropout, const SpanOptions& span,
                             std::int64_t keep_bytes)
    : heads_(heads),
      dropout_(dropout),
      keep_bytes_(keep_bytes),
      query_({width, width}, init::uniform_fan_in(width)),
      key_({width, width}, init::uniform_fan_in(width)),
      value_({width, width}, init::uniform_fan_in(width)),
      output_({width, width}, init::uniform_fan_in(width)),
      span_(heads, span) {
  if (slots > 0) persistent_.emplace(heads, slots, width / heads);
}

Variable SelfAttention::forward(const Variable& x, LayerPast& past, const Variable& position_keys) {
  Tape& tape = x.tape();
  const SpanOptions& span = span_.options();
  const Variable key_weight = tape.parameter(key_), value_weight = tape.parameter(value_);
  AttentionVariables in;
  in.content_query = linear(x, tape.parameter(query_));
  in.keys = linear(x, key_weight);
  in.values = linear(x, value_weight);
  in.position_keys = position_keys;
  in.span = span_.forward(tape);
  AttentionOptions options;
  options.heads = heads_;
  options.score_scale = 1.0 / std::sqrt(static_cast<double>(x.shape()[-1] / heads_));
  options.max_distance = static_cast<int>(span.max_span);
  options.ramp = span.adaptive ? span.ramp : 0;
  options.mask_offset = span.mask_offset;
  options.ramp_gradient = span.ramp_gradient;
  options.dropout = DropoutRule(dropout_);
  options.windows = span_.windows();
  if (persistent_) {
    in.slot_keys = persistent_->keys(tape);
    in.slot_values = persistent_->values(tape);
    options.slot_value_scale = persistent_->value_scale();
  }
  past.read(tape, key_weight, value_weight, in, options);
  const Variable mixed = attention(in, options, keep_bytes_).out;
  past.update(tape.step(), x.value(), in.keys.value(), in.values.value(), span_);
  return linear(mixed, tape.parameter(output_));
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
