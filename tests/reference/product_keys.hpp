#pragma once
/// Selection from product keys, plainly: the order of slots ([product-key 3]) and three ways to
/// the same list that share nothing with the framework's. T is float or double, in which scores are added.

#include <cstdint>
#include <vector>

#include "tests/reference/array64.hpp"

namespace engram::reference {

/// Slots, best first.
template <class T>
struct SelectedSlots {
  std::vector<T> scores;
  std::vector<std::int64_t> ids;
};
/// The half-scores of one to three sets of n sub-keys.
template <class T>
using HalfScores = std::vector<std::vector<T>>;

/// The definition: all n^F slots are sorted. 1 <= k <= n^F.
template <class T>
SelectedSlots<T> sort_all_slots(const HalfScores<T>& sets, std::int64_t k);
/// Those of the best min(k, n) sub-keys of every set are sorted.
template <class T>
SelectedSlots<T> sort_grid(const HalfScores<T>& sets, std::int64_t k);
/// The best is taken from a priority queue, and those that it was just before are put in, k times.
template <class T>
SelectedSlots<T> take_from_queue(const HalfScores<T>& sets, std::int64_t k);

struct ProductKeyTopK {
  Array64 scores, ids;  // [R, H, k]
};
/// query: [R, H dq]; keys: [H, F, n, dq / F]. Throws std::invalid_argument where two scores that decide about the
/// result or its order are closer than `gap`.
ProductKeyTopK product_key_top_k(const Array64& query, const Array64& keys, std::int64_t k, double gap);

}  // namespace engram::reference
