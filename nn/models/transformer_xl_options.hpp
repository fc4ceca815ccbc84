#pragma once
/// Everything that defines a Transformer-XL or one of the vanilla Transformers it is compared with, and what is
/// refused. Dai et al.: "Transformer-XL: Attentive Language Models Beyond a Fixed-Length Context" (2019); all details
/// in docs/mathematics/transformer-xl.md.

#include <cstdint>
#include <string_view>
#include <vector>

#include "autograd/initializer.hpp"
#include "core/names.hpp"
#include "nn/layers/position_kind.hpp"
#include "nn/layers/product_key_options.hpp"
#include "nn/layers/vocabulary_clusters.hpp"
#include "nn/past/segment_context.hpp"

namespace engram {

/// From which distribution weights start ([transformer-xl 4.1]).
enum class WeightStart : std::uint8_t {
  normal,  ///< N(0, init_deviation^2)
  uniform  ///< U(-init_range, init_range)
};
constexpr auto names_of(WeightStart) {
  return std::to_array<Named<WeightStart>>({{WeightStart::normal, "normal"}, {WeightStart::uniform, "uniform"}});
}
/// And from which the input's table of vectors does, which the output shares where tables are tied.
enum class EmbeddingStart : std::uint8_t {
  as_weights,  ///< from theirs
  normal,      ///< N(0, init_deviation^2)
  uniform      ///< U(-embedding_init_range, embedding_init_range)
};
constexpr auto names_of(EmbeddingStart) {
  return std::to_array<Named<EmbeddingStart>>({{EmbeddingStart::as_weights, "as_weights"},
                                               {EmbeddingStart::normal, "normal"},
                                               {EmbeddingStart::uniform, "uniform"}});
}

struct TransformerXlOptions {
  std::int64_t vocabulary = 0;  ///< V, symbols
  std::int64_t layers = 0;      ///< N
  std::int64_t width = 0;       ///< D, of the hidden states; even where sinusoids are used
  std::int64_t heads = 0;       ///< H
  std::int64_t depth = 0;       ///< d_h, of each head; 0: width / heads, which must then divide it
  std::int64_t inner = 0;       ///< F, of the feed-forward sublayer
  PositionKind positions = PositionKind::relative;
  ShawTerms shaw_terms = ShawTerms::ab;
  /// Rows of the tables of learned positions: shaw, a row for each distance that is told apart; absolute_learned, the
  /// tokens of the longest block, its extension among them.
  std::int64_t position_rows = 0;
  bool tie_position_biases = true;  ///< one u and one v for all layers
  bool pre_norm = false;            ///< layer norms before the sublayers instead of after the residuals
  bool intermediate_losses =
      false;                 ///< training: layers but the last predict too, until halfway ([transformer-xl 4.5])
  double second_target = 0;  ///< training: weight of the loss of the token after the next; 0: none

  std::int64_t memory = 0;  ///< M, positions that every layer remembers of what came before; 0: none
  Visibility visibility = Visibility::all;
  MemoryStart memory_start = MemoryStart::empty;
  /// Distances above it count as it, with `shaw` those from it on as one less ([transformer-xl 1.8]); 0, -1: no clamp.
  std::int64_t clamp = 0;

  std::int64_t embedding_width = 0;        ///< E; 0: width
  std::vector<std::int64_t> cutoffs = {};  ///< of the vocabulary's clusters; empty: none
  std::int64_t divisor = 1;                ///< vectors of cluster i are E / divisor^i long; 1: one table for all
  ClusterOrder cluster_order = ClusterOrder::natural;
  bool tie_tables = true;                             ///< one table for input and output
  bool tie_projections = true;                        ///< clusters: one projection for input and output
  std::vector<std::int64_t> untied_projections = {};  ///< clusters that have two all the same
  bool project_same_width = true;                     ///< clusters: even vectors of the model's width have projections

  double dropout = 0;  ///< on embeddings, positions, sublayers' outputs, feed-forward activations, last states
  double attention_dropout = 0;    ///< on attention weights
  bool dropout_over_time = false;  ///< `dropout` drops a feature of a stream in all positions of a segment, or in none
  /// On the input's words: all vectors of a word in a block are dropped, or none is ([transformer-xl 4.6]), but for the
  /// first of a block that sees nothing before itself. The output's table has none of it, even where it is the input's.
  double word_dropout = 0;
  double norm_epsilon = 1e-5;
  WeightStart init = WeightStart::normal;  ///< of weights, tables, biases of queries and slots of clusters
  double init_deviation = 0.02;            ///< of them where they start normal
  double init_range = 0.1;                 ///< the bound of those that start uniform
  EmbeddingStart embedding_init = EmbeddingStart::as_weights;
  double embedding_init_range = 0.1;        ///< the bound of the table where embedding_init is `uniform`
  double projection_init_deviation = 0.01;  ///< of the clusters' projections
  double norm_init_deviation = 0.02;        ///< of the gains of layer norms, around 1
  /// MiB of attention weights that all layers together keep for the backward pass, as AllAttentionOptions has it.
  std::int64_t attention_memory = 1024;
  ProductKeyOptions memories = {};  ///< memories that are looked up, in some of the layers

  /// 0 where there are no heads, which check() refuses.
  std::int64_t head_depth() const { return depth > 0 || heads < 1 ? depth : width / heads; }
  std::int64_t token_width() const { return embedding_width > 0 ? embedding_width : width; }
  /// What weights and the input's table start as.
  Initializer weight_start() const;
  Initializer table_start() const;
  /// Throws UsageError naming the option and its value ([transformer-xl 11]).
  void check() const;
};

}  // namespace engram
