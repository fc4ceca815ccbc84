#include "nn/layers/vocabulary_clusters.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/error.hpp"
#include "nn/option_limits.hpp"

namespace engram {
namespace {

/// Of the cluster after so many cut-offs.
std::int64_t cluster_width(std::int64_t width, std::size_t cutoffs, std::int64_t divisor) {
  for (; cutoffs > 0; --cutoffs) width /= divisor;
  return width;
}

std::string list(std::span<const std::int64_t> numbers) {
  std::string written;
  for (const std::int64_t number : numbers) written += text(written.empty() ? "" : ", ", number);
  return '[' + written + ']';
}

std::string advice(std::span<const std::int64_t> cutoffs, std::int64_t vocabulary, std::int64_t width,
                   std::int64_t divisor) {
  const std::vector<std::int64_t> fitting = VocabularyClusters::fitting(cutoffs, vocabulary, width, divisor);
  if (fitting.empty()) return "\n  cutoffs = [] gives every word a vector of the model's width";
  return text("\n  cutoffs = ", list(fitting), " would fit");
}

/// Rounded down to its first two digits.
std::int64_t rounded_down(double number) {
  double unit = 1;
  while (number >= 100 * unit) unit *= 10;
  return static_cast<std::int64_t>(std::floor(number / unit) * unit);
}

}  // namespace

VocabularyClusters::VocabularyClusters(std::span<const std::int64_t> cutoffs, std::int64_t vocabulary,
                                       std::int64_t width, std::int64_t divisor, ClusterOrder order)
    : order_(order) {
  if (cutoffs.empty()) throw UsageError("model: cutoffs must be at least one number to make clusters, got none");
  check(cutoffs, vocabulary, width, divisor);
  for (std::size_t cluster = 0; cluster <= cutoffs.size(); ++cluster) {
    const std::int64_t first = cluster == 0 ? 0 : cutoffs[cluster - 1];
    const std::int64_t end = cluster == cutoffs.size() ? vocabulary : cutoffs[cluster];
    clusters_.push_back({first, end - first, cluster_width(width, cluster, divisor)});
  }
}

void VocabularyClusters::check(std::span<const std::int64_t> cutoffs, std::int64_t vocabulary, std::int64_t width,
                               std::int64_t divisor) {
  if (divisor < 1)
    throw UsageError(text("model: the clusters' divisor must be at least 1, got ", divisor,
                          "\n  1 gives the vectors of all clusters one width"));
  const std::string of = vocabulary > 0 ? text(" for a vocabulary of ", vocabulary) : std::string();
  const auto require = [&](bool valid, const auto&... rule) {
    if (!valid) throw UsageError(text("model: cutoffs must ", rule..., advice(cutoffs, vocabulary, width, divisor)));
  };
  for (std::size_t i = 0; i < cutoffs.size(); ++i) {
    require(cutoffs[i] >= 1, "be at least 1, got ", cutoffs[i], " in ", list(cutoffs), of);
    require(cutoffs[i] < option_limits::kRows, "be below ", option_limits::kRows, ", got ", cutoffs[i], " in ",
            list(cutoffs), of);
    require(i == 0 || cutoffs[i] > cutoffs[i - 1], "increase, got ", cutoffs[i], " after ", i == 0 ? 0 : cutoffs[i - 1],
            " in ", list(cutoffs), of);
    require(vocabulary == 0 || cutoffs[i] < vocabulary, "be below the vocabulary of ", vocabulary, ", got ", cutoffs[i],
            " in ", list(cutoffs));
    require(cluster_width(width, i + 1, divisor) >= 1, "leave each cluster a width of at least 1, got ", width, " / ",
            divisor, "^", i + 1, " after the cut-off ", cutoffs[i], " in ", list(cutoffs), of);
  }
}

std::vector<std::int64_t> VocabularyClusters::fitting(std::span<const std::int64_t> cutoffs, std::int64_t vocabulary,
                                                      std::int64_t width, std::int64_t divisor) {
  if (vocabulary == 0) vocabulary = std::numeric_limits<std::int32_t>::max();
  std::vector<std::int64_t> wanted;
  for (const std::int64_t cutoff : cutoffs)
    if (cutoff >= 1) wanted.push_back(cutoff);
  if (wanted.empty()) wanted = {20'000, 40'000, 200'000};  // of the released word model
  std::ranges::sort(wanted);
  // Where they do not fit, the last one is put where the released model has it: at three quarters of the vocabulary.
  const double scale =
      wanted.back() < vocabulary ? 1.0 : 0.75 * static_cast<double>(vocabulary) / static_cast<double>(wanted.back());
  std::vector<std::int64_t> fitting;
  for (const std::int64_t cutoff : wanted) {
    const std::int64_t scaled = scale == 1.0 ? cutoff : rounded_down(scale * static_cast<double>(cutoff));
    const bool increases = scaled > (fitting.empty() ? 0 : fitting.back());
    if (increases && scaled < vocabulary && cluster_width(width, fitting.size() + 1, divisor) >= 1)
      fitting.push_back(scaled);
  }
  return fitting;
}

std::size_t VocabularyClusters::of(std::int64_t word) const {
  std::size_t cluster = 0;  // most words are in the first one
  while (cluster + 1 < clusters_.size() && word >= clusters_[cluster + 1].first) ++cluster;
  return cluster;
}

}  // namespace engram
