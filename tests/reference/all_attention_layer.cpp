#include "tests/reference/all_attention_layer.hpp"

#include <cmath>

#include "tests/reference/basic_ops.hpp"

namespace engram::reference {

SpanAttentionOptions all_attention_options(std::int64_t width, std::int64_t heads, std::int64_t slots,
                                           std::int64_t span_length, double ramp) {
  require(heads >= 1 && width % heads == 0, "all_attention: d must be a multiple of H");
  SpanAttentionOptions options;
  options.heads = heads;
  options.score_scale = 1 / std::sqrt(static_cast<double>(width / heads));
  options.slot_score_scale = 1;
  options.slot_value_scale = std::sqrt(static_cast<double>(slots));
  options.max_distance = span_length;
  options.span_length = span_length;
  options.ramp = ramp;
  return options;
}

LayerResult all_attention_layer(const AttentionWeights& weights, const PositionTables& positions, const Array64& cache,
                                const Array64& h, const SpanAttentionOptions& options) {
  SpanAttentionInputs inputs;
  inputs.content_query = linear(h, weights.query);
  if (cache.given()) {
    inputs.past_keys = linear(cache, weights.key);
    inputs.past_values = linear(cache, weights.value);
  }
  inputs.keys = linear(h, weights.key);
  inputs.values = linear(h, weights.value);
  inputs.position_keys = positions.keys;
  inputs.position_values = positions.values;
  inputs.slot_keys = weights.slot_keys;
  inputs.slot_values = weights.slot_values;
  inputs.span = weights.span_weight.given() ? sigmoid(linear(h, weights.span_weight, weights.span_bias)) : weights.span;
  SpanAttentionResult attention = span_attention(inputs, options);
  LayerResult result;
  result.mapped = linear(attention.out, weights.out);
  result.output = layer_norm(h, result.mapped, weights.norm_gain, weights.norm_bias).normalised;
  result.weights = std::move(attention.weights);
  result.heads = std::move(attention.out);
  return result;
}

Array64 feed_forward_sublayer(const FeedForwardWeights& weights, const Array64& g, const Array64& dropout) {
  Array64 inner = relu(linear(g, weights.in, weights.in_bias));
  if (dropout.given()) {
    require(dropout.shape == inner.shape, "feed_forward: dropout multipliers [B, M, F]");
    for (std::size_t k = 0; k < inner.data.size(); ++k) inner.data[k] *= dropout.data[k];
  }
  return layer_norm(g, linear(inner, weights.out, weights.out_bias), weights.norm_gain, weights.norm_bias).normalised;
}

LayerResult transformer_layer(const AttentionWeights& attention, const FeedForwardWeights& feed_forward,
                              const PositionTables& positions, const Array64& cache, const Array64& h,
                              const SpanAttentionOptions& options, const Array64& dropout) {
  LayerResult result = all_attention_layer(attention, positions, cache, h, options);
  result.output = feed_forward_sublayer(feed_forward, result.output, dropout);
  return result;
}

}  // namespace engram::reference
