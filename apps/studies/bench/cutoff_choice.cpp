#include "apps/studies/bench/cutoff_choice.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/error.hpp"

namespace engram {
namespace {

/// Where a size lies among those that were measured: between number `first` and the next, `share` of the way in
/// logarithms, and how many times larger than the largest it is.
struct Place {
  std::size_t first = 0;
  double share = 0, beyond = 1;

  Place(const std::vector<double>& sizes, double size) {
    if (size >= sizes.back()) {
      first = sizes.size() - 2;
      share = 1;
      beyond = size / sizes.back();
      return;
    }
    if (size <= sizes.front()) return;
    first = static_cast<std::size_t>(std::ranges::upper_bound(sizes, size) - sizes.begin()) - 1;
    share = std::log(size / sizes[first]) / std::log(sizes[first + 1] / sizes[first]);
  }
};

}  // namespace

CutoffPlan cheapest_cutoffs(std::span<const std::int64_t> candidates, std::int64_t vocabulary, std::size_t clusters,
                            const ClusterSeconds& seconds) {
  if (clusters < 2) throw UsageError(text("count: a vocabulary must have at least 2 clusters, got ", clusters));
  const std::size_t cuts = clusters - 1, count = candidates.size();
  if (count < cuts)
    throw UsageError(text("count: a vocabulary of ", vocabulary, " has ", count, " places to cut it at, too few for ",
                          clusters, " clusters"));
  struct Best {
    double seconds = std::numeric_limits<double>::infinity();
    std::size_t before = 0;  // where the cluster before ends
  };
  // best[k][j]: of clusters 0 .. k, the last of which ends at candidate j.
  std::vector<std::vector<Best>> best(cuts, std::vector<Best>(count));
  for (std::size_t j = 0; j < count; ++j) best[0][j].seconds = seconds(0, 0, candidates[j]);
  for (std::size_t k = 1; k < cuts; ++k)
    for (std::size_t j = k; j < count; ++j)
      for (std::size_t i = k - 1; i < j; ++i)
        if (const double sum = best[k - 1][i].seconds + seconds(k, candidates[i], candidates[j]);
            sum < best[k][j].seconds)
          best[k][j] = {sum, i};
  Best whole;
  for (std::size_t j = cuts - 1; j < count; ++j)
    if (const double sum = best[cuts - 1][j].seconds + seconds(cuts, candidates[j], vocabulary); sum < whole.seconds)
      whole = {sum, j};
  CutoffPlan plan{.cutoffs = std::vector<std::int64_t>(cuts), .seconds = whole.seconds};
  for (std::size_t k = cuts, at = whole.before; k-- > 0; at = best[k][at].before) plan.cutoffs[k] = candidates[at];
  return plan;
}

double seconds_of_cutoffs(std::span<const std::int64_t> cutoffs, std::int64_t vocabulary,
                          const ClusterSeconds& seconds) {
  double sum = 0;
  for (std::size_t k = 0; k <= cutoffs.size(); ++k)
    sum += seconds(k, k == 0 ? 0 : cutoffs[k - 1], k == cutoffs.size() ? vocabulary : cutoffs[k]);
  return sum;
}

std::vector<std::int64_t> cutoff_candidates(std::int64_t vocabulary) {
  constexpr std::int64_t kAll = 64, kPart = 50;
  std::vector<std::int64_t> candidates;
  for (std::int64_t cutoff = 1; cutoff < vocabulary;) {
    candidates.push_back(cutoff);
    if (cutoff < kAll) {
      ++cutoff;
      continue;
    }
    std::int64_t unit = 1;  // three digits are left
    while (cutoff / unit >= 1000) unit *= 10;
    cutoff = (cutoff + std::max(unit, cutoff / kPart)) / unit * unit;
  }
  return candidates;
}

MeasuredTimes::MeasuredTimes(std::vector<double> rows, std::vector<double> columns, std::vector<double> seconds)
    : rows_(std::move(rows)), columns_(std::move(columns)), seconds_(std::move(seconds)) {
  if (rows_.size() < 2 || columns_.size() < 2 || seconds_.size() != rows_.size() * columns_.size())
    throw Error(text("measured times: must be of two sizes at least of each side, got ", rows_.size(), " and ",
                     columns_.size(), " with ", seconds_.size(), " times"));
}

double MeasuredTimes::at(double rows, double columns) const {
  const Place row(rows_, rows), column(columns_, columns);
  const auto log_of = [&](std::size_t i, std::size_t j) { return std::log(seconds_[i * columns_.size() + j]); };
  const auto along = [&](std::size_t i) {
    return (1 - column.share) * log_of(i, column.first) + column.share * log_of(i, column.first + 1);
  };
  const double middle = (1 - row.share) * along(row.first) + row.share * along(row.first + 1);
  return std::exp(middle) * row.beyond * column.beyond;
}

}  // namespace engram
