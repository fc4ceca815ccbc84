#pragma once
/// The all-attention network and the Transformer with adaptive spans it is compared with. Sukhbaatar et al.:
/// "Augmenting Self-attention with Persistent Memory" (2019), section 3; all details in the family's spec.

#include <memory>
#include <memory_resource>
#include <optional>
#include <vector>

#include "nn/layers/feed_forward.hpp"
#include "nn/layers/layer_norm.hpp"
#include "nn/layers/self_attention.hpp"
#include "nn/layers/token_io.hpp"
#include "nn/models/all_attention_options.hpp"

namespace engram {

/// What all layers did in one forward pass. Its tensors are the step's: it must go before the step ends.
struct ModelTrace {
  std::pmr::vector<AttentionTrace> layers;
  bool keep_results = false;  ///< see AttentionTrace

  /// `memory`: of the step, see Step::objects().
  explicit ModelTrace(std::pmr::memory_resource* memory) : layers(memory) {}
};

/// The pasts of all layers for one set of streams. Training, validation and every piece of a split batch have their
/// own.
using ModelPast = std::vector<std::unique_ptr<LayerPast>>;

/// One layer, post-norm: attention and its residual are normalised; some memory modes add a second sublayer, which is a
/// feed-forward network or attention to persistent slots alone.
class AllAttentionLayer final : public Module {
 public:
  explicit AllAttentionLayer(const AllAttentionOptions& options);
  /// x: [B, M, width] -> [B, M, width].
  Variable forward(const Variable& x, LayerPast& past, const PositionTables& positions, AttentionTrace* trace);
  SelfAttention& attention() { return attention_; }
  void visit(Visitor& visit) override;

 private:
  SelfAttention attention_;
  LayerNorm attention_norm_;
  std::int64_t keep_bytes_;
  double dropout_;
  std::optional<FeedForward> feed_forward_;     // memory mode transformer
  std::optional<PersistentMemory> memory_;      // ff_attn: one head, slots of the layer's width
  std::optional<LayerNorm> feed_forward_norm_;  // of either
};

class AllAttentionModel final : public Module {
 public:
  /// Throws UsageError when the options are not valid. Takes no memory: see ParameterStore::place.
  explicit AllAttentionModel(const AllAttentionOptions& options);

  const AllAttentionOptions& options() const { return options_; }

  /// Hidden caches for training and for evaluation that projects the past anew, in the dtype of the step's activations.
  /// `allocator` must outlive them.
  ModelPast hidden_past(Backend& backend, Allocator& allocator, std::int64_t streams, DType dtype) const;
  /// Key and value rings for frozen weights, with the present spans.
  ModelPast key_value_past(Backend& backend, Allocator& allocator, std::int64_t streams, DType dtype) const;

  /// The last hidden states [B, M, width] of a block of tokens [B, M], i32 in [0, vocabulary): what tokens() makes
  /// losses and probabilities of. Updates `past`. `trace` gets what every layer did.
  Variable hidden(Tape& tape, const TokenBatch& batch, ModelPast& past, ModelTrace* trace = nullptr);
  /// Logits [B, M, vocabulary] of the next tokens, f32 in a step with bf16 activations. Throws Error where the
  /// vocabulary is in clusters.
  Variable forward(Tape& tape, const Tensor& tokens, ModelPast& past);
  TokenIo& tokens() { return *tokens_; }
  const TokenIo& tokens() const { return *tokens_; }
  /// lambda S times the sum over layers of the mean zeta, times `share`: the second loss of training, by the trace of
  /// the forward pass. Absent when lambda is 0 or spans are fixed.
  Variable span_penalty(const ModelTrace& trace, double lambda, double share = 1) const;

  /// After loading, and after every update: brings the host's copy of the spans up to date.
  void refresh_spans(Backend& backend);
  AttentionSpan& span(std::int64_t layer);
  const AttentionSpan& span(std::int64_t layer) const;

  void visit(Visitor& visit) override;

 private:
  AllAttentionOptions options_;
  std::unique_ptr<TokenIo> tokens_;
  // [S, width / heads], shared by all heads and layers; row delta - 1. Values: only where they have their own.
  Parameter position_keys_;
  std::optional<Parameter> position_values_;
  std::vector<std::unique_ptr<AllAttentionLayer>> layers_;
  std::vector<AttentionSpan*> spans_;  // of the layers
};

}  // namespace engram
