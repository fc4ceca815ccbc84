#include "apps/studies/attention/distance_study.hpp"

#include <algorithm>
#include <cmath>

#include "apps/studies/attention/traced_reading.hpp"
#include "core/error.hpp"
#include "core/host_copy.hpp"

namespace engram {

DistanceStudy::DistanceStudy(const PlacedModel& placed, std::int64_t layers, std::int64_t heads,
                             std::optional<ScoreTerm> term)
    : placed_(placed), term_(term) {
  for (std::int64_t layer = 0; layer < layers; ++layer)
    for (std::int64_t head = 0; head < heads; ++head)
      sums_.push_back({.layer = layer, .head = head, .probability = {}});
}

DistanceStudy::DistanceStudy(const Placed<TransformerXlModel>& placed, std::optional<ScoreTerm> term)
    : DistanceStudy(placed, placed.model.options().layers, placed.model.options().heads, term) {
  const PositionKind positions = placed.model.options().positions;
  if (term && positions != PositionKind::relative)
    throw UsageError(text("attention: --term is of scores of model.positions relative, got ", name_of(positions)));
}

DistanceStudy::DistanceStudy(const Placed<ProductKeyTransformer>& placed)
    : DistanceStudy(placed, placed.model.options().layers, placed.model.options().heads, {}) {}

void DistanceStudy::read(std::span<const std::int32_t> tokens, std::int64_t block, const EvaluationWatch& watch) {
  read_traced(placed_, tokens, {.block = block, .term = term_},
              [&](const ModelTrace& trace, std::int64_t first, std::int64_t count) {
                for (std::size_t layer = 0; layer < trace.layers.size(); ++layer)
                  take(trace.layers[layer], static_cast<std::int64_t>(layer), count);
                queries_ += count;
                if (watch) watch(first + count, std::ssize(tokens));
              });
}

void DistanceStudy::take(const AttentionTrace& trace, std::int64_t layer, std::int64_t queries) {
  const Tensor& kept = term_ ? trace.alone.kept : trace.seen.kept;
  dispatch_float(kept.dtype(), "attention study", [&]<class T>() {
    const std::vector<T> host = host_copy<T>(placed_.runtime.backend(), kept);
    const T* at = host.data();
    const std::int64_t heads = trace.context.heads;
    for (std::int64_t head = 0; head < heads; ++head) {
      HeadDistances& sums = sums_[static_cast<std::size_t>(layer * heads + head)];
      const std::int64_t farthest = trace.context.windows.window[static_cast<std::size_t>(head)];
      if (std::ssize(sums.probability) <= farthest) sums.probability.resize(static_cast<std::size_t>(farthest + 1));
      std::vector<double> row(row_found_ ? static_cast<std::size_t>(farthest + 1) : 0);
      for (std::int64_t query = 0; query < queries; ++query) {
        for (std::int64_t distance = farthest; distance >= 0; --distance) {
          const auto weight = static_cast<double>(*at++);
          if (row_found_) row[static_cast<std::size_t>(distance)] = weight;
          if (weight == 0) continue;
          sums.probability[static_cast<std::size_t>(distance)] += weight;
          sums.entropy -= weight * std::log2(weight);
          sums.distance += weight * static_cast<double>(distance);
        }
        if (row_found_) row_found_(sums, queries_ + query, row);
      }
    }
  });
}

std::vector<HeadDistances> DistanceStudy::heads() const {
  std::vector<HeadDistances> means = sums_;
  std::size_t distances = 0;
  for (const HeadDistances& head : means) distances = std::max(distances, head.probability.size());
  const auto queries = static_cast<double>(std::max<std::int64_t>(1, queries_));
  for (HeadDistances& head : means) {
    head.probability.resize(distances);
    for (double& sum : head.probability) sum /= queries;
    head.entropy /= queries;
    head.distance /= queries;
  }
  return means;
}

}  // namespace engram
