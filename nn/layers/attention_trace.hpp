#pragma once
/// What one attention layer did, for those who look at it from outside: the penalty on spans, and reports.

#include <cstdint>
#include <optional>

#include "autograd/functions/attention.hpp"

namespace engram {

/// The parts of relative scores, (a) to (d) in Dai et al.: "Transformer-XL" (2019), section 3.3.
enum class ScoreTerm : std::uint8_t {
  content,       ///< (a) q k
  position,      ///< (b) q r
  content_bias,  ///< (c) u k
  position_bias  ///< (d) v r
};

/// What is asked of a layer, and what it did in one forward pass.
struct AttentionTrace {
  bool keep_results = false;      ///< asks for all but the span, which would hold its memory longer: with weights
  Variable span;                  ///< zeta as the layer used it: [H] or [B, M, H]; absent when spans are fixed
  AttentionOptions context;       ///< of the call over the context
  AttentionResult seen;           ///< its result
  AttentionResult slots;          ///< of the call over persistent slots with a softmax of their own; absent without
  std::optional<ScoreTerm> term;  ///< asks relative attention for `alone`
  AttentionResult alone;          ///< the same context with no scores but this term's; the layer goes on with `seen`
};

/// What attention() is to keep: all weights for a trace with results, else the layer's own `keep_bytes`.
inline std::int64_t kept_bytes(const AttentionTrace* trace, std::int64_t keep_bytes) {
  return trace != nullptr && trace->keep_results ? kKeepWeights : keep_bytes;
}

/// attention() over the context of a layer, which fills `trace`, if one is given.
inline AttentionResult traced_attention(const AttentionVariables& in, const AttentionOptions& options,
                                        std::int64_t keep_bytes, AttentionTrace* trace) {
  AttentionResult result = attention(in, options, kept_bytes(trace, keep_bytes));
  if (trace != nullptr && trace->keep_results) {
    trace->context = options;
    trace->seen = result;
  }
  return result;
}

}  // namespace engram
