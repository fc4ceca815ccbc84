#include "apps/run/evaluation/product_key_usage.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/error.hpp"

namespace engram {
namespace {

/// ln N + sum z ln z for the shares z of non-negative numbers.
template <class T>
double divergence(const std::vector<T>& numbers) {
  const double total = std::accumulate(numbers.begin(), numbers.end(), 0.0,
                                       [](double sum, T number) { return sum + static_cast<double>(number); });
  double sum = std::log(static_cast<double>(numbers.size()));
  for (const T number : numbers) {
    const double share = static_cast<double>(number) / total;
    if (share > 0) sum += share * std::log(share);
  }
  return sum;
}

/// The fewest numbers, largest first, that add up to this share of all. `falling` adds up to 1.
std::int64_t holding(const std::vector<double>& falling, double share) {
  double sum = 0;
  for (std::size_t i = 0; i < falling.size(); ++i)
    if ((sum += falling[i]) >= share) return static_cast<std::int64_t>(i) + 1;
  return static_cast<std::int64_t>(falling.size());
}

/// 1 + 1/N - 2 mean of the running sums of the shares in rising order; shares of 0 are not in `falling`.
double gini(const std::vector<double>& falling, std::int64_t slots) {
  double running = 0, sum = 0;
  for (auto share = falling.rbegin(); share != falling.rend(); ++share) sum += running += *share;
  const auto n = static_cast<double>(slots);
  return 1 + 1 / n - 2 * sum / n;
}

}  // namespace

ProductKeyUsage::ProductKeyUsage(std::int64_t slots, std::int64_t heads, std::int64_t selected)
    : heads_(heads),
      selected_(selected),
      weights_(static_cast<std::size_t>(slots)),
      reads_(static_cast<std::size_t>(slots)),
      first_(static_cast<std::size_t>(slots)),
      by_heads_(static_cast<std::size_t>(slots)) {
  if (heads < 1 || heads > kMostHeads)
    throw UsageError(text("memory usage: heads must be from 1 to ", kMostHeads, ", got ", heads));
}

void ProductKeyUsage::add(std::span<const std::int64_t> ids, std::span<const double> weights) {
  const auto heads = static_cast<std::size_t>(heads_), selected = static_cast<std::size_t>(selected_);
  if (ids.size() != weights.size() || ids.size() % (heads * selected) != 0)
    throw Error(text("memory usage: ids and weights must be [positions, ", heads_, ", ", selected_, "], got ",
                     ids.size(), " and ", weights.size()));
  std::vector<std::int64_t> at_position;
  for (std::size_t begin = 0; begin < ids.size(); begin += heads * selected) {
    for (std::size_t head = 0; head < heads; ++head) {
      const std::size_t best = begin + head * selected;
      for (std::size_t j = best; j < best + selected; ++j) {
        const auto slot = static_cast<std::size_t>(ids[j]);
        if (slot >= weights_.size())
          throw Error(text("memory usage: slots must be in [0, ", weights_.size(), "), got ", ids[j]));
        weights_[slot] += weights[j];
        ++reads_[slot];
        by_heads_[slot] |= std::uint64_t{1} << head;
        if (weights[j] > 0) entropy_ -= weights[j] * std::log(weights[j]);
      }
      first_[static_cast<std::size_t>(ids[best])] = true;
      top_weight_ += weights[best];
    }
    at_position.assign(ids.begin() + static_cast<std::ptrdiff_t>(begin),
                       ids.begin() + static_cast<std::ptrdiff_t>(begin + heads * selected));
    std::ranges::sort(at_position);
    for (std::size_t i = 0; i < at_position.size(); ++i)  // a head reads no slot twice
      repeated_ += (i > 0 && at_position[i] == at_position[i - 1]) ||
                   (i + 1 < at_position.size() && at_position[i] == at_position[i + 1]);
    ++positions_;
  }
}

void ProductKeyUsage::merge(const ProductKeyUsage& other) {
  if (other.weights_.size() != weights_.size() || other.heads_ != heads_ || other.selected_ != selected_)
    throw Error("memory usage: only parts of one memory's reads can be joined");
  for (std::size_t slot = 0; slot < weights_.size(); ++slot) {
    weights_[slot] += other.weights_[slot];
    reads_[slot] += other.reads_[slot];
    first_[slot] = first_[slot] || other.first_[slot];
    by_heads_[slot] |= other.by_heads_[slot];
  }
  positions_ += other.positions_;
  repeated_ += other.repeated_;
  entropy_ += other.entropy_;
  top_weight_ += other.top_weight_;
}

std::vector<double> ProductKeyUsage::falling_shares() const {
  std::vector<double> shares;
  double total = 0;
  for (const double weight : weights_) {
    if (weight > 0) shares.push_back(weight);
    total += weight;
  }
  for (double& share : shares) share /= total;
  std::ranges::sort(shares, std::greater());
  return shares;
}

ProductKeyUsage::Metrics ProductKeyUsage::metrics() const {
  if (positions_ == 0) throw Error("memory usage: metrics need reads, got none");
  const auto n = static_cast<double>(weights_.size());
  const auto share_of = [n](auto count) { return static_cast<double>(count) / n; };
  const std::vector<double> falling = falling_shares();
  const auto read = std::ranges::count_if(reads_, [](std::int64_t reads) { return reads > 0; });
  const auto by_several =
      std::ranges::count_if(by_heads_, [](std::uint64_t heads) { return std::popcount(heads) > 1; });
  const double queries = static_cast<double>(positions_) * static_cast<double>(heads_);
  Metrics found;
  found.slots = static_cast<std::int64_t>(weights_.size());
  found.positions = positions_;
  found.untouched = found.slots - read;
  found.usage = share_of(read);
  found.usage_by_weight = share_of(falling.size());
  found.kl = divergence(weights_);
  found.kl_by_count = divergence(reads_);
  found.top_usage = share_of(std::ranges::count(first_, true));
  found.gini = gini(falling, found.slots);
  found.half_mass = holding(falling, 0.5);
  found.most_mass = holding(falling, 0.9);
  found.nearly_all_mass = holding(falling, 0.99);
  found.score_entropy = entropy_ / queries;
  found.top_weight = top_weight_ / queries;
  found.head_overlap = static_cast<double>(by_several) / static_cast<double>(read);
  found.repeated_reads = static_cast<double>(repeated_) / (queries * static_cast<double>(selected_));
  found.total_weight = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  return found;
}

}  // namespace engram
