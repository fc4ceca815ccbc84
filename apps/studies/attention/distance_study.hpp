#pragma once
/// How far back the heads of a trained Transformer-XL look: their mean attention probability by distance over a text,
/// with its memory carried along. Dai et al.: "Transformer-XL: Attentive Language Models Beyond a Fixed-Length Context"
/// (2019), appendix; [transformer-xl 6.8]. The same of the Transformer with product-key memory, which reads windows.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "apps/run/evaluation/watched_plan.hpp"
#include "apps/run/model/placed_model.hpp"
#include "nn/models/product_key_transformer.hpp"
#include "nn/models/transformer_xl.hpp"

namespace engram {

struct HeadDistances {
  std::int64_t layer = 0, head = 0;
  /// Mean probability by distance, [0] being the query's own position. Places that a query does not see count as 0, so
  /// that they sum to 1.
  std::vector<double> probability;
  double entropy = 0;   ///< bits, mean over all queries
  double distance = 0;  ///< positions, mean over all queries
};

class DistanceStudy {
 public:
  /// `term`: of the scores, its softmax alone instead of that of all of them, in every layer of the unchanged model.
  /// Throws UsageError for a term of a model whose positions are not relative.
  explicit DistanceStudy(const Placed<TransformerXlModel>& placed, std::optional<ScoreTerm> term = {});
  /// Blocks are windows: each is read from nothing, and its queries see what is before them in it.
  explicit DistanceStudy(const Placed<ProductKeyTransformer>& placed);

  /// Has `found` called with the weights of every query of every head that is read from now on, by distance, [0] being
  /// the query's own position; in the order of AttentionStudy::on_rows(). `position`: of the query in the text.
  using RowFound = std::function<void(const HeadDistances& head, std::int64_t position, std::span<const double> row)>;
  void on_rows(RowFound found) { row_found_ = std::move(found); }

  /// Reads a text from the start of a stream, in blocks of at most `block` tokens.
  void read(std::span<const std::int32_t> tokens, std::int64_t block, const EvaluationWatch& watch = {});

  std::int64_t queries() const { return queries_; }
  /// Every head, layer by layer; all have as many distances.
  std::vector<HeadDistances> heads() const;

 private:
  DistanceStudy(const PlacedModel& placed, std::int64_t layers, std::int64_t heads, std::optional<ScoreTerm> term);
  void take(const AttentionTrace& trace, std::int64_t layer, std::int64_t queries);

  PlacedModel placed_;
  std::optional<ScoreTerm> term_;
  std::vector<HeadDistances> sums_;  // over the queries
  std::int64_t queries_ = 0;
  RowFound row_found_;
};

}  // namespace engram
