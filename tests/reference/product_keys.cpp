#include "tests/reference/product_keys.hpp"

#include <algorithm>
#include <queue>

namespace engram::reference {
namespace {

using Ranks = std::vector<std::int64_t>;  // one for each set

// Whether a comes before b by score alone: NaN is below every number.
template <class T>
bool is_better(T a, T b) {
  return std::isnan(b) ? !std::isnan(a) : a > b;
}

template <class T>
struct Slot {
  T score;
  Ranks ranks;
};
template <class T>
bool comes_before(const Slot<T>& a, const Slot<T>& b) {
  if (is_better(a.score, b.score)) return true;
  if (is_better(b.score, a.score)) return false;
  return a.ranks < b.ranks;
}

// Sub-keys of every set by rank.
template <class T>
std::vector<Ranks> sorted_sets(const HalfScores<T>& sets) {
  std::vector<Ranks> all;
  for (const std::vector<T>& scores : sets) {
    Ranks order;
    for (std::size_t i = 0; i < scores.size(); ++i) order.push_back(static_cast<std::int64_t>(i));
    std::stable_sort(order.begin(), order.end(), [&scores](std::int64_t a, std::int64_t b) {
      return is_better(scores[static_cast<std::size_t>(a)], scores[static_cast<std::size_t>(b)]);
    });
    all.push_back(order);
  }
  return all;
}

template <class T>
Slot<T> slot_at(const HalfScores<T>& sets, const std::vector<Ranks>& sorted, const Ranks& ranks) {
  Slot<T> slot{T(0), ranks};
  for (std::size_t set = 0; set < sets.size(); ++set) {
    const std::int64_t sub_key = sorted[set][static_cast<std::size_t>(ranks[set])];
    const T score = sets[set][static_cast<std::size_t>(sub_key)];
    slot.score = set == 0 ? score : slot.score + score;
  }
  return slot;
}

template <class T>
void append(const HalfScores<T>& sets, const std::vector<Ranks>& sorted, const Slot<T>& slot,
            SelectedSlots<T>& selected) {
  std::int64_t id = 0;
  for (std::size_t set = 0; set < sets.size(); ++set)
    id = id * static_cast<std::int64_t>(sets[set].size()) + sorted[set][static_cast<std::size_t>(slot.ranks[set])];
  selected.scores.push_back(slot.score);
  selected.ids.push_back(id);
}

// Of all ranks below `length`.
template <class T>
SelectedSlots<T> sort_ranks_below(std::int64_t length, const HalfScores<T>& sets, std::int64_t k) {
  const std::vector<Ranks> sorted = sorted_sets(sets);
  std::vector<Slot<T>> slots;
  Ranks ranks(sets.size(), 0);
  for (bool more = true; more;) {
    slots.push_back(slot_at(sets, sorted, ranks));
    more = false;
    for (std::size_t set = sets.size(); set-- > 0 && !more;) {
      more = ++ranks[set] < length;
      if (!more) ranks[set] = 0;
    }
  }
  require(k >= 1 && k <= static_cast<std::int64_t>(slots.size()), "product keys: k is 1 to the number of slots");
  std::sort(slots.begin(), slots.end(), comes_before<T>);
  SelectedSlots<T> selected;
  for (std::int64_t j = 0; j < k; ++j) append(sets, sorted, slots[static_cast<std::size_t>(j)], selected);
  return selected;
}

template <class T>
std::int64_t sub_keys(const HalfScores<T>& sets) {
  require(!sets.empty(), "product keys: there is a set");
  for (const auto& set : sets) require(set.size() == sets[0].size(), "product keys: all sets are of one size");
  return static_cast<std::int64_t>(sets[0].size());
}

}  // namespace

template <class T>
SelectedSlots<T> sort_all_slots(const HalfScores<T>& sets, std::int64_t k) {
  return sort_ranks_below(sub_keys(sets), sets, k);
}

template <class T>
SelectedSlots<T> sort_grid(const HalfScores<T>& sets, std::int64_t k) {
  return sort_ranks_below(std::min(k, sub_keys(sets)), sets, k);
}

template <class T>
SelectedSlots<T> take_from_queue(const HalfScores<T>& sets, std::int64_t k) {
  const std::int64_t n = sub_keys(sets);
  const std::vector<Ranks> sorted = sorted_sets(sets);
  const auto comes_after = [](const Slot<T>& a, const Slot<T>& b) { return comes_before(b, a); };
  std::priority_queue<Slot<T>, std::vector<Slot<T>>, decltype(comes_after)> queue(comes_after);
  queue.push(slot_at(sets, sorted, Ranks(sets.size(), 0)));
  SelectedSlots<T> selected;
  for (std::int64_t j = 0; j < k; ++j) {
    require(!queue.empty(), "product keys: k is 1 to the number of slots");
    const Slot<T> best = queue.top();
    queue.pop();
    append(sets, sorted, best, selected);
    // Every slot follows that with its last rank above zero one less, so it is put in once.
    std::size_t from = 0;
    for (std::size_t set = 0; set < sets.size(); ++set)
      if (best.ranks[set] > 0) from = set;
    for (std::size_t set = from; set < sets.size(); ++set) {
      Ranks next = best.ranks;
      if (++next[set] < n) queue.push(slot_at(sets, sorted, next));
    }
  }
  return selected;
}

template SelectedSlots<float> sort_all_slots(const HalfScores<float>&, std::int64_t);
template SelectedSlots<double> sort_all_slots(const HalfScores<double>&, std::int64_t);
template SelectedSlots<float> sort_grid(const HalfScores<float>&, std::int64_t);
template SelectedSlots<double> sort_grid(const HalfScores<double>&, std::int64_t);
template SelectedSlots<float> take_from_queue(const HalfScores<float>&, std::int64_t);
template SelectedSlots<double> take_from_queue(const HalfScores<double>&, std::int64_t);

ProductKeyTopK product_key_top_k(const Array64& query, const Array64& keys, std::int64_t k, double gap) {
  const std::int64_t rows = query.axis(0), heads = keys.axis(0), sets = keys.axis(1), n = keys.axis(2),
                     width = keys.axis(3);
  require(query.axis(1) == heads * sets * width, "product keys: queries and keys are of one width");
  std::int64_t slots = 1;
  for (std::int64_t set = 0; set < sets; ++set) slots *= n;
  ProductKeyTopK result{zeros({rows, heads, k}), zeros({rows, heads, k})};
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t head = 0; head < heads; ++head) {
      HalfScores<double> scores;
      for (std::int64_t set = 0; set < sets; ++set) {
        std::vector<double>& of_set = scores.emplace_back();
        for (std::int64_t i = 0; i < n; ++i) {
          double sum = 0;
          for (std::int64_t d = 0; d < width; ++d)
            sum += query.at(row, (head * sets + set) * width + d) * keys.at(head, set, i, d);
          of_set.push_back(sum);
        }
      }
      const SelectedSlots<double> best = sort_all_slots(scores, std::min(slots, k + 1));
      for (std::size_t j = 1; j < best.scores.size(); ++j)
        require(best.scores[j - 1] - best.scores[j] >= gap, "product keys: scores are too close for this comparison");
      for (std::int64_t j = 0; j < k; ++j) {
        result.scores.at(row, head, j) = best.scores[static_cast<std::size_t>(j)];
        result.ids.at(row, head, j) = static_cast<double>(best.ids[static_cast<std::size_t>(j)]);
      }
    }
  return result;
}

}  // namespace engram::reference
