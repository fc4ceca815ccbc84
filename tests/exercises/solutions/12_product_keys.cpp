#include "tests/exercises/12_product_keys.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>

namespace engram::exercises {
namespace {

/// Indices of the k largest scores of a half, the largest first.
std::vector<int> best_of_half(std::span<const double> scores, int k) {
  std::vector<int> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::partial_sort(order, order.begin() + k, std::greater{},
                            [&](int i) { return scores[static_cast<std::size_t>(i)]; });
  order.resize(static_cast<std::size_t>(k));
  return order;
}

}  // namespace

std::vector<int> best_slots(const PairScores& scores, int k) {
  const int n = static_cast<int>(scores.first().size());
  const std::vector<int> rows = best_of_half(scores.first(), k), columns = best_of_half(scores.second(), k);
  std::vector<std::pair<double, int>> candidates;
  for (int p = 0; p < k; ++p)
    for (int q = 0; (p + 1) * (q + 1) <= k; ++q) {  // the (p + 1) (q + 1) - 1 slots above it are all better
      const int i = rows[static_cast<std::size_t>(p)], j = columns[static_cast<std::size_t>(q)];
      candidates.emplace_back(scores.of(i, j), i * n + j);
    }
  std::ranges::partial_sort(candidates, candidates.begin() + k, std::greater{});
  std::vector<int> slots;
  for (int rank = 0; rank < k; ++rank) slots.push_back(candidates[static_cast<std::size_t>(rank)].second);
  return slots;
}

}  // namespace engram::exercises
