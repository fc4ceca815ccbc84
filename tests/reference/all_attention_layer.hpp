#pragma once
/// Whole layers from the equations of [all-attention 1.2, 1.3, 1.8]: the all-attention layer (queries, keys,
/// values, one attention over context and persistent slots, output map, residual, layer norm) and the standard
/// Transformer layer that the paper compares with, which adds a ReLU feed-forward sublayer. Both are post-norm.
/// Surprising: the cache holds hidden states, not keys, and is projected again with the current weights.

#include <cstdint>

#include "tests/reference/array64.hpp"
#include "tests/reference/span_attention.hpp"

namespace engram::reference {

struct AttentionWeights {
  Array64 query, key, value, out;  // [d, d] each, stored [out, in], no biases; head a owns rows a*e .. a*e+e-1
  Array64 slot_keys, slot_values;  // K', V' [H, N, e]; not given: no persistent slots
  Array64 span;                    // zeta [H]; not given: fixed or dynamic span
  Array64 span_weight, span_bias;  // v [H, d], b [H] of dynamic spans: zeta of a query is sigmoid(v . h + b)
  Array64 norm_gain, norm_bias;    // [d]
};

struct FeedForwardWeights {
  Array64 in, in_bias;           // [F, d], [F]
  Array64 out, out_bias;         // [d, F], [d]
  Array64 norm_gain, norm_bias;  // [d]
};

struct LayerResult {
  Array64 weights;  // [B, H, M, P + N], see span_attention.hpp for the order of slots
  Array64 heads;    // o [B, M, d]: the heads' outputs side by side
  Array64 mapped;   // y = W_o o [B, M, d]
  Array64 output;   // [B, M, d]
};

/// The paper's scales and window: 1/sqrt(e) on context scores, 1 on q . K', sqrt(N) on V', distances 1 to S.
SpanAttentionOptions all_attention_options(std::int64_t width, std::int64_t heads, std::int64_t slots,
                                           std::int64_t span_length, double ramp);

/// Relative positions for all heads and layers; row i is distance i + 1.
struct PositionTables {
  Array64 keys;    // u [>= P, e]
  Array64 values;  // u' [>= P, e], or not given
};

/// LN(h + W_o attention). cache [B, C, d] oldest first, or not given, h [B, M, d].
LayerResult all_attention_layer(const AttentionWeights& weights, const PositionTables& positions, const Array64& cache,
                                const Array64& h, const SpanAttentionOptions& options);

/// g + W2 (multiplier * relu(W1 g + b1)) + b2, then layer norm. g [B, M, d]; dropout multipliers [B, M, F] or not
/// given.
Array64 feed_forward_sublayer(const FeedForwardWeights& weights, const Array64& g, const Array64& dropout = {});

/// all_attention_layer, then feed_forward_sublayer; `output` is the second's.
LayerResult transformer_layer(const AttentionWeights& attention, const FeedForwardWeights& feed_forward,
                              const PositionTables& positions, const Array64& cache, const Array64& h,
                              const SpanAttentionOptions& options, const Array64& dropout = {});

}  // namespace engram::reference
