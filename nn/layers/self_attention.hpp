#pragma once
/// Multi-head attention over the recent past and to persistent slots, which share a softmax or have their own.
/// [all-attention 1.3 to 1.8, 3].

#include <optional>

#include "autograd/variable.hpp"
#include "nn/layers/attention_span.hpp"
#include "nn/layers/attention_start.hpp"
#include "nn/layers/attention_trace.hpp"
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
  AttentionStart start = AttentionStart::inverse_root;
};

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
  Variable attend_context(const Variable& x, const Variable& query, AttentionPast& past,
                          const PositionTables& positions, AttentionTrace* trace);
  /// The rows of a projection that belong to heads with a context.
  Variable context_rows(const Variable& weight) const;

  SelfAttentionOptions options_;
  int context_heads_;
  Parameter query_, key_, value_, output_;  // [width, width], no biases
  AttentionSpan span_;                      // of the heads with a context
  std::optional<PersistentMemory> persistent_;
};

}  // namespace engram
