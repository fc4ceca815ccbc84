#pragma once
/// The attention core of the all-attention network by itself, without projections: content and position scores over a
/// window of distances plus persistent slots, one softmax, adaptive span mask, dropout, values; and its derivatives.
/// Source: [all-attention 1.3 to 1.8, 2]; with min_distance = 0 and two queries also Transformer-XL's
/// attention. Surprising: the mask multiplies exponentials inside the softmax, so weights with a mask still sum to 1;
/// and at the start of a stream zero vectors take part unless Pad::mask is chosen.
///
/// Letters: B streams, M queries of the block, C past positions given, H heads, D depth of a head, P context slots =
/// max_distance - min_distance + 1, N persistent slots. Slots are numbered by distance, nearest first: slot i < P is
/// distance min_distance + i, slot P + n is persistent slot n.

#include <cstdint>
#include <functional>
#include <vector>

#include "tests/reference/array64.hpp"

namespace engram::reference {

/// What positions before the oldest given past position are.
enum class Pad {
  attend_zero,  // zero vectors that take part: key 0, value 0, score from the position term alone
  mask,         // not there: weight 0
};

/// At which raw = (R + z - x) / R the mask's clamp lets the gradient of the span through.
enum class RampGradient {
  inclusive,  // 0 <= raw <= 1, what the released code does
  right,      // 0 <= raw < 1, the derivative for a growing span
  open,       // 0 < raw < 1
};

/// Factor on one weight, 0 or 1 / (1 - p), for (stream, head, query, slot).
using DropoutMultiplier = std::function<double(std::int64_t, std::int64_t, std::int64_t, std::int64_t)>;

struct SpanAttentionOptions {
  std::int64_t heads = 1;
  double score_scale = 1;       // on context scores: 1 / sqrt(D)
  double slot_score_scale = 1;  // on q . slot_key: 1 when the stored keys are K' without its factor sqrt(D)
  double slot_value_scale = 1;  // on slot values: sqrt(N) when they are V' without it
  std::int64_t min_distance = 1;
  std::int64_t max_distance = 0;  // farthest distance computed; min_distance - 1: no context at all
  std::int64_t span_length = 0;   // S of z = S zeta; 0: max_distance. Differs when the window is trimmed
  double ramp = 0;                // R, positions; 0: no span mask
  std::int64_t mask_offset = 0;   // see raw_span_mask
  Pad pad = Pad::attend_zero;
  std::vector<std::int64_t>
      valid_past;  // [B], for Pad::mask: how many of the newest past positions exist; empty: all C
  RampGradient ramp_gradient = RampGradient::inclusive;
  DropoutMultiplier dropout;  // none: 1 everywhere
};

/// Shapes of inputs, and of gradients with respect to them. Heads lie side by side in the last axis of [.., H*D].
struct SpanAttentionInputs {
  Array64 content_query;           // [B, M, H*D]; also the query of the persistent slots
  Array64 position_query;          // [B, M, H*D]; not given: content_query
  Array64 past_keys, past_values;  // [B, C, H*D], oldest first; not given: C = 0
  Array64 keys, values;            // [B, M, H*D]
  Array64 position_keys;           // [>= P, D] for all heads or [>= P, H*D]; not given: no position term
  Array64 position_values;         // the same shapes: u', added to the values of the context
  Array64 slot_keys, slot_values;  // [H, N, D]; not given: N = 0
  Array64 span;                    // zeta in [0, 1], [H] or, of every query, [B, M, H]; not given: no mask
};

struct SpanAttentionResult {
  Array64 out;      // [B, M, H*D]; 0 for a query that sees nothing
  Array64 weights;  // [B, H, M, P + N], after mask and renormalisation, before dropout
  Array64 lse;      // [B, H, M] log of the sum of masked exponentials; -infinity for a query that sees nothing
};

/// Throws std::invalid_argument on shapes that do not fit.
SpanAttentionResult span_attention(const SpanAttentionInputs& inputs, const SpanAttentionOptions& options);

/// Gradients of sum(out * out_gradient), out_gradient [B, M, H*D]; inputs not given have no gradient, and without a
/// position query its share is part of content_query's. The gradient of the span is the task's part only. A slot
/// whose mask is exactly 0 is outside the maximum, so its exponent is capped at 18.
SpanAttentionInputs span_attention_gradients(const SpanAttentionInputs& inputs, const SpanAttentionOptions& options,
                                             const Array64& out_gradient);

}  // namespace engram::reference
