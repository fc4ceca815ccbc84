#pragma once
/// Multi-head attention over the recent past and over persistent slots, in one softmax. Spec of the all-attention
/// family, sections 1.3 to 1.8.

#include <optional>

#include "autograd/variable.hpp"
#include "nn/layers/attention_span.hpp"
#include "nn/layers/persistent_memory.hpp"
#include "nn/memory/past.hpp"
#include "nn/module.hpp"
#include "nn/visitor.hpp"

namespace engram {

class SelfAttention final : public Module {
 public:
  /// `slots`: persistent slots per head, 0: none. `dropout`: on the attention weights. `keep_bytes`: attention weights
  /// are kept for the backward pass when they take no more; else they are computed again.
  SelfAttention(std::int64_t width, int heads, std::int64_t slots, double dropout, const SpanOptions& span,
                std::int64_t keep_bytes = 0);

  /// x: [B, M, width], the block; past: this layer's memory of what came before, updated with the block;
  /// position_keys: [S, width / heads], row delta - 1 for distance delta. Returns [B, M, width].
  Variable forward(const Variable& x, LayerPast& past, const Variable& position_keys);
  AttentionSpan& span() { return span_; }
  const AttentionSpan& span() const { return span_; }
  void visit(Visitor& visit) override;

 private:
  int heads_;
  double dropout_;
  std::int64_t keep_bytes_;
  Parameter query_, key_, value_, output_;  // [width, width], no biases
  AttentionSpan span_;
  std::optional<PersistentMemory> persistent_;
};

}  // namespace engram
