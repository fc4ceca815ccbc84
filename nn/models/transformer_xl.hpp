#pragma once
/// Transformer-XL and its vanilla baselines. Dai et al.: "Transformer-XL: Attentive Language Models Beyond a
/// Fixed-Length Context" (2019), section 3; all details in docs/mathematics/transformer-xl.md.

#include <memory>
#include <optional>
#include <vector>

#include "nn/layers/auxiliary_heads.hpp"
#include "nn/layers/device_constants.hpp"
#include "nn/layers/position_sublayer.hpp"
#include "nn/layers/relative_attention.hpp"
#include "nn/layers/residual.hpp"
#include "nn/layers/state_dropout.hpp"
#include "nn/models/language_model.hpp"
#include "nn/models/transformer_xl_options.hpp"

namespace engram {

/// One layer, [transformer-xl 1.6]: attention and a feed-forward network, each with a residual. Post-norm normalises
/// the sums, pre-norm what goes into the sublayers.
class TransformerXlLayer final : public Module {
 public:
  /// `memory`: the layer's product-key memory, or nullptr.
  TransformerXlLayer(const TransformerXlOptions& options, std::unique_ptr<ProductKeyMemory> memory);
  /// x: [B, M, width] -> [B, M, width]. absolute_rows: i32 [B, M], rows of the layer's own table of positions; empty
  /// for kinds of positions that have none.
  Variable forward(const Variable& x, SegmentPast& past, const RelativePositions& positions,
                   const Tensor& absolute_rows, const LayerTrace& trace);
  void visit(Visitor& visit) override;

 private:
  StateDropout dropout_;
  std::optional<Parameter> positions_;  // absolute_learned: T, [L, width], the last row for the last token
  RelativeAttention attention_;
  Residual attention_residual_;
  PositionSublayer sublayer_;
  Residual feed_forward_residual_;
};

class TransformerXlModel final : public LanguageModel {
 public:
  /// Throws UsageError when the options are not valid. Takes no memory: see ParameterStore::place.
  explicit TransformerXlModel(const TransformerXlOptions& options);

  const TransformerXlOptions& options() const { return options_; }

  /// What pasts made from now on remember and show: evaluation may see farther than training did, with the same
  /// weights. At the start it is as the options say. Throws UsageError as their check() does.
  void set_context(const SegmentContext& context);
  const SegmentContext& context() const { return context_; }

  /// Takes batch.context and batch.fed_again into account. Throws Error for a batch of other streams than the pasts',
  /// and where absolute_learned has fewer rows than the block.
  Variable hidden(Tape& tape, const TokenBatch& batch, ModelPast& past, ModelTrace* trace = nullptr) override;
  std::pmr::vector<Variable> auxiliary_losses(const ModelTrace& trace, const Variable& scored, const TokenBatch& batch,
                                              double row_weight, double progress) override;
  std::int64_t auxiliary_count(double progress) const override;
  /// N times the memory, and where all of it is visible what each block adds: an upper bound for blocks that are no
  /// longer than the longest that the model has seen, or that a past was made for.
  std::int64_t reach() const override;
  /// Where it does not see as many positions wherever it stands in its block.
  bool depends_on_blocks() const override { return context_.visibility == Visibility::all; }

  void visit(Visitor& visit) override;

 private:
  struct Biases final : Module {
    Parameter content, position;  // u, v: [H d_h]
    explicit Biases(const TransformerXlOptions& options);
    void visit(Visitor& visit) override;
  };

  /// Memories of states.
  ModelPast make_training_past(const PastPlace& place) const override;
  /// Rings of keys and values; of states, where a memory of zeros is normalised, so that its keys are not zero.
  ModelPast make_frozen_past(const PastPlace& place, std::int64_t longest_block) const override;
  RelativePositions relative_positions(Tape& tape, SegmentPast& past, std::int64_t block, DType dtype);
  /// Rows of absolute positions, [B, M]. Sinusoids: row 0 for the last token, one more for each before it, clamped.
  /// Learned ones: the last row of the table for the last token, one less for each before it.
  Tensor absolute_rows(Step& step, std::int64_t streams, std::int64_t block, const SegmentContext& context);
  /// embedded: [B, M, width], ids: [B, M]; `begins`: the first token sees nothing before itself.
  Variable drop_words(const Variable& embedded, const Tensor& ids, bool begins) const;

  TransformerXlOptions options_;
  SegmentContext context_;
  StateDropout dropout_;
  std::optional<Biases> position_biases_;  // relative, tied
  std::vector<std::unique_ptr<TransformerXlLayer>> layers_;
  std::optional<AuxiliaryHeads> auxiliary_;
  DeviceConstants constants_;
  mutable std::int64_t longest_block_ = 1;  // seen so far
};

}  // namespace engram
