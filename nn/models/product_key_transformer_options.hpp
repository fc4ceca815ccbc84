#pragma once
/// Everything that defines the Transformer of the paper on product-key memory, and what is refused. Lample et al.:
/// "Large Memory Layers with Product Keys" (2019), section 4; all details in the [product-key 1.6].

#include <cstdint>

#include "nn/layers/feed_forward.hpp"
#include "nn/layers/product_key_options.hpp"

namespace engram {

struct ProductKeyTransformerOptions {
  std::int64_t vocabulary = 0;               ///< Vc, symbols
  std::int64_t layers = 0;                   ///< L
  std::int64_t width = 0;                    ///< d, of the hidden states
  std::int64_t heads = 0;                    ///< of attention; must divide width
  std::int64_t inner = 0;                    ///< numbers inside a feed-forward sublayer; 0: 4 width
  Activation activation = Activation::gelu;  ///< of the feed-forward sublayers
  std::int64_t position_rows = 512;          ///< P, learned positions: no window may be longer
  bool pre_norm = false;                     ///< layer norms before the sublayers and at the end, not after residuals
  double dropout = 0;                        ///< on the embeddings and on what every sublayer gives
  double attention_dropout = 0;              ///< on attention weights
  double norm_epsilon = 1e-12;               ///< added to the variance by layer norms
  /// MiB of attention weights that all layers together keep for the backward pass, as AllAttentionOptions has it.
  std::int64_t attention_memory = 1024;
  ProductKeyOptions memories = {};  ///< in some of the layers

  std::int64_t feed_forward_width() const { return inner > 0 ? inner : 4 * width; }
  /// Throws UsageError naming the option and its value.
  void check() const;
};

}  // namespace engram
