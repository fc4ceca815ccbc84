#pragma once
/// Where to cut a vocabulary into clusters so that adaptive input and softmax take the least time: Grave et al. (2017),
/// section 4, with times that were measured in the place of their model of a product.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace engram {

/// Seconds of a step's work on cluster `cluster`, which has the words [first, end).
using ClusterSeconds = std::function<double(std::size_t cluster, std::int64_t first, std::int64_t end)>;

struct CutoffPlan {
  std::vector<std::int64_t> cutoffs;  ///< one less than there are clusters, increasing
  double seconds = 0;                 ///< of all clusters
};

/// The cut-offs with the least sum of seconds, of all choices of clusters - 1 increasing ones among `candidates`, by
/// dynamic programming; of equal sums the one whose last cut-offs are smallest. `candidates`: increasing, in
/// (0, vocabulary). Throws UsageError for fewer than two clusters, and for fewer candidates than cut-offs.
CutoffPlan cheapest_cutoffs(std::span<const std::int64_t> candidates, std::int64_t vocabulary, std::size_t clusters,
                            const ClusterSeconds& seconds);

/// The sum for these cut-offs.
double seconds_of_cutoffs(std::span<const std::int64_t> cutoffs, std::int64_t vocabulary,
                          const ClusterSeconds& seconds);

/// Cut-offs worth a try: all below 64, then each about a fiftieth above the one before, in round numbers.
std::vector<std::int64_t> cutoff_candidates(std::int64_t vocabulary);

/// Seconds that were measured at some sizes, for all others.
class MeasuredTimes {
 public:
  /// seconds[i * columns.size() + j] was measured at rows[i] and columns[j], which increase, two of each at least. All
  /// are above 0.
  MeasuredTimes(std::vector<double> rows, std::vector<double> columns, std::vector<double> seconds);

  /// Between sizes, products of powers of both; below the smallest the same as there, for small work takes no less
  /// time; above the largest in proportion to what is more.
  double at(double rows, double columns) const;

 private:
  std::vector<double> rows_, columns_, seconds_;
};

}  // namespace engram
