#pragma once
/// The all-attention network and the Transformer with adaptive spans it is compared with. Sukhbaatar et al.:
/// "Augmenting Self-attention with Persistent Memory" (2019), section 4; all details in
/// docs/mathematics/all-attention.md.

#include <memory>
#include <optional>
#include <vector>

#include "nn/layers/layer_norm.hpp"
#include "nn/layers/position_sublayer.hpp"
#include "nn/layers/self_attention.hpp"
#include "nn/models/all_attention_options.hpp"
#include "nn/models/language_model.hpp"

namespace engram {

/// One layer, post-norm: attention and its residual are normalised; some memory modes add a second sublayer, which is a
/// feed-forward network or attention to persistent slots alone.
class AllAttentionLayer final : public Module {
 public:
  /// `memory`: the layer's product-key memory, or nullptr.
  explicit AllAttentionLayer(const AllAttentionOptions& options, std::unique_ptr<ProductKeyMemory> memory = nullptr);
  /// x: [B, M, width] -> [B, M, width].
  Variable forward(const Variable& x, AttentionPast& past, const PositionTables& positions,
                   const LayerTrace& trace = {});
  SelfAttention& attention() { return attention_; }
  void visit(Visitor& visit) override;

 private:
  SelfAttention attention_;
  LayerNorm attention_norm_;
  std::int64_t keep_bytes_;
  double dropout_;
  PositionSublayer sublayer_;                   // memory mode transformer, and product-key memories
  std::optional<PersistentMemory> memory_;      // ff_attn: one head, slots of the layer's width
  std::optional<LayerNorm> feed_forward_norm_;  // of either
};

class AllAttentionModel final : public LanguageModel {
 public:
  /// Throws UsageError when the options are not valid. Takes no memory: see ParameterStore::place.
  explicit AllAttentionModel(const AllAttentionOptions& options);

  const AllAttentionOptions& options() const { return options_; }

  Variable hidden(Tape& tape, const TokenBatch& batch, ModelPast& past, ModelTrace* trace = nullptr) override;
  /// Logits [B, M, vocabulary] of the next tokens, f32 in a step with bf16 activations. Throws Error where the
  /// vocabulary is in clusters.
  Variable forward(Tape& tape, const Tensor& ids, ModelPast& past);
  /// lambda S times the sum over layers of the mean zeta, times `share`: the second loss of training, by the trace of
  /// the forward pass. Absent when lambda is 0 or spans are fixed.
  Variable penalty(const ModelTrace& trace, double lambda, double share = 1) const override;

  /// The host's copy of the spans.
  void refresh(Backend& backend) override;
  /// The longest reach of every layer, added up.
  std::int64_t reach() const override;
  AttentionSpan& span(std::int64_t layer);
  const AttentionSpan& span(std::int64_t layer) const;

  void visit(Visitor& visit) override;

 private:
  /// Hidden caches.
  ModelPast make_training_past(const PastPlace& place) const override;
  /// Key and value rings, with the present spans.
  ModelPast make_frozen_past(const PastPlace& place, std::int64_t longest_block) const override;

  AllAttentionOptions options_;
  // [S, width / heads], shared by all heads and layers; row delta - 1. Values: only where they have their own.
  Parameter position_keys_;
  std::optional<Parameter> position_values_;
  std::vector<std::unique_ptr<AllAttentionLayer>> layers_;
  std::vector<AttentionSpan*> spans_;  // of the layers
};

}  // namespace engram
