#include "tests/reference/memory_variants.hpp"

#include <cmath>

#include "tests/reference/basic_ops.hpp"

namespace engram::reference {
namespace {

/// The same layer with the first half of its heads only.
AttentionWeights first_half(const AttentionWeights& weights) {
  AttentionWeights half = weights;
  const std::int64_t rows = weights.query.axis(0) / 2;
  for (Array64* projection : {&half.query, &half.key, &half.value}) *projection = slice(*projection, 0, 0, rows);
  if (half.span.given()) half.span = slice(half.span, 0, 0, half.span.axis(0) / 2);
  half.slot_keys = half.slot_values = {};
  return half;
}

}  // namespace

Array64 slot_attention(const Array64& query, const Array64& keys, const Array64& values) {
  const std::int64_t heads = keys.axis(0), slots = keys.axis(1), depth = keys.axis(2);
  require(query.axis(2) == heads * depth, "slot_attention: query [B, M, H*D]");
  Array64 out = zeros(query.shape);
  for (std::int64_t b = 0; b < query.axis(0); ++b)
    for (std::int64_t m = 0; m < query.axis(1); ++m)
      for (std::int64_t head = 0; head < heads; ++head) {
        Array64 scores = zeros({1, slots});
        for (std::int64_t n = 0; n < slots; ++n)
          for (std::int64_t j = 0; j < depth; ++j)
            scores.at(0, n) += query.at(b, m, head * depth + j) * keys.at(head, n, j);
        const Array64 weights = softmax(scores);
        for (std::int64_t n = 0; n < slots; ++n)
          for (std::int64_t j = 0; j < depth; ++j)
            out.at(b, m, head * depth + j) +=
                weights.at(0, n) * std::sqrt(static_cast<double>(slots)) * values.at(head, n, j);
      }
  return out;
}

LayerResult variant_attention_layer(SlotPlace place, const AttentionWeights& weights, const PositionTables& positions,
                                    const Array64& cache, const Array64& h, SpanAttentionOptions options) {
  if (place == SlotPlace::joint) return all_attention_layer(weights, positions, cache, h, options);
  AttentionWeights context = weights;
  context.slot_keys = context.slot_values = {};
  if (place == SlotPlace::own_heads) {
    context = first_half(weights);
    options.heads /= 2;
    // The output map and the norm are those of the whole layer: here they only have to fit.
    context.out = zeros({weights.out.axis(0), weights.out.axis(1) / 2});
  }
  LayerResult result = all_attention_layer(context, positions, cache, h, options);
  const Array64 query = linear(h, weights.query);
  const std::int64_t width = query.axis(2);
  if (place == SlotPlace::own_heads)
    result.heads = concat(
        {result.heads, slot_attention(slice(query, 2, width / 2, width), weights.slot_keys, weights.slot_values)}, 2);
  else if (place == SlotPlace::own_softmax || place == SlotPlace::one_set)
    result.heads = add(result.heads, slot_attention(query, weights.slot_keys, weights.slot_values));
  result.mapped = linear(result.heads, weights.out);
  result.output = layer_norm(h, result.mapped, weights.norm_gain, weights.norm_bias).normalised;
  return result;
}

}  // namespace engram::reference
