#pragma once
/// Multi-head attention over the recent past and to persistent slots, which share a softmax or have their own.
/// [all-attention 1.3 to 1.8, 3].

#include <optional>

#include "autograd/variable.hpp"
#include "nn/layers/attention_span.hpp"
#include "nn/layers/memory_mode.hpp"
#include "nn/layers/persistent_memory.hpp"
#include "nn/module.hpp"
#include "nn/past/past.hpp"
#include "nn/visitor.hpp"

namespace engram {

struct SelfAttentionOptions {
  std::int64_t width = 0;
  int heads = 1;  ///< must divide width; even for head_split
  MemoryMode mode = MemoryMode::none;
  std::int64_t slots = 0;       ///< persistent slots per head, or of the one set of single_head
  double dropout = 0;           ///< on the attention weights
  std::int64_t keep_bytes = 0;  ///< attention weights are kept for the backward pass when they take no more
  SpanOptions span;
};

/// The parts of relative scores, (a) to (d) in Dai et al.: "Transformer-XL" (2019), section 3.3.
enum class ScoreTerm : std::uint8_t {
  content,       ///< (a) q k
  position,      ///< (b) q r
  content_bias,  ///< (c) u k
  position_bias  ///< (d) v r
};

/// What one attention layer did, for those who look at it from outside: the penalty on spans, and reports.
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

/// Relative positions, shared by all layers and heads: row delta - 1 for distance delta.
struct PositionTables {
  Variable keys;    ///< [S, D]
  Variable values;  ///< [S, D], or absent
};

class SelfAttention final : public Module {
 public:
  explicit SelfAttention(const SelfAttentionOptions& options);

  /// x: [B, M, width], the block; past: this layer's memory of what came before, updated with the block. Returns
  /// [B, M, width]. Fills `trace`, if one is given.
  Variable forward(const Variable& x, AttentionPast& past, const PositionTables& positions,
                   AttentionTrace* trace = nullptr);
  AttentionSpan& span() { return span_; }
  const AttentionSpan& span() const { return span_; }
  void visit(Visitor& visit) override;

 private:
  /// The heads that look at the context; `query` is theirs: [B, M, H D].
  AttentionResult attend_context(const Variable& x, const Variable& query, AttentionPast& past,
                                 const PositionTables& positions, AttentionTrace* trace);
  AttentionResult attend_slots(const Variable& query, AttentionTrace* trace);
  /// The rows of a projection that belong to heads with a context.
  Variable context_rows(const Variable& weight) const;

  SelfAttentionOptions options_;
  int context_heads_;
  Parameter query_, key_, value_, output_;  // [width, width], no biases
  AttentionSpan span_;                      // of the heads with a context
  std::optional<PersistentMemory> persistent_;
};

}  // namespace engram
