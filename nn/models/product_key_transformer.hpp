#pragma once
/// The Transformer of the paper on product-key memory. Lample et al.: "Large Memory Layers with Product Keys" (2019),
/// section 4; [product-key 1.6]. It reads windows of text, each from nothing: positions are
/// counted from the start of a block, and no layer remembers the block before.

#include <memory>
#include <optional>
#include <vector>

#include "nn/layers/device_constants.hpp"
#include "nn/layers/position_sublayer.hpp"
#include "nn/layers/residual.hpp"
#include "nn/layers/window_attention.hpp"
#include "nn/models/language_model.hpp"
#include "nn/models/product_key_transformer_options.hpp"

namespace engram {

/// x <- LN1(x + dropout(attention(x))), x <- LN2(x + dropout(F(x))); with pre_norm x <- x + dropout(attention(LN1(x))),
/// x <- x + dropout(F(LN2(x))). F is a feed-forward network, a product-key memory, or
/// both; the dropout is on the feed-forward part alone.
class ProductKeyTransformerLayer final : public Module {
 public:
  /// `memory`: nullptr where the layer has none.
  ProductKeyTransformerLayer(const ProductKeyTransformerOptions& options, std::unique_ptr<ProductKeyMemory> memory);
  /// x: [B, M, width] -> [B, M, width].
  Variable forward(const Variable& x, const WindowContext& context, const LayerTrace& trace);
  void visit(Visitor& visit) override;

 private:
  double dropout_;
  WindowAttention attention_;
  Residual attention_residual_;
  PositionSublayer sublayer_;
  Residual feed_forward_residual_;
};

/// Parameters: embedding.table [Vc, width], which is the output's too; positions [P, width]; embedding_norm;
/// layers.i.{attention.{query,key,value,output}, attention_norm, feed_forward.{inner,outer} or memory,
/// feed_forward_norm}; output_norm, with pre_norm alone; output.bias [Vc]. Vectors and positions start N(0, 1 / width),
/// linear maps and the output's bias uniform in +-1/sqrt(inputs), as in the released program.
class ProductKeyTransformer final : public LanguageModel {
 public:
  /// Throws UsageError when the options are not valid. Takes no memory: see ParameterStore::place.
  explicit ProductKeyTransformer(const ProductKeyTransformerOptions& options);

  const ProductKeyTransformerOptions& options() const { return options_; }

  /// Every row of the batch is a window. Throws UsageError for blocks of more than position_rows tokens.
  Variable hidden(Tape& tape, const TokenBatch& batch, ModelPast& past, ModelTrace* trace = nullptr) override;
  /// The longest window.
  std::int64_t reach() const override { return options_.position_rows; }
  bool depends_on_blocks() const override { return true; }

  void visit(Visitor& visit) override;

 private:
  /// Pasts of no layer: nothing is remembered.
  ModelPast make_training_past(const PastPlace&) const override { return {}; }
  ModelPast make_frozen_past(const PastPlace&, std::int64_t) const override { return {}; }

  ProductKeyTransformerOptions options_;
  Parameter positions_;  // [P, width]
  LayerNorm embedding_norm_;
  std::vector<std::unique_ptr<ProductKeyTransformerLayer>> layers_;
  std::optional<LayerNorm> output_norm_;  // pre_norm
  WindowContexts contexts_;
  DeviceConstants constants_;
};

}  // namespace engram
