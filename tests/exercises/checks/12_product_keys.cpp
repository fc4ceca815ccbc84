#include "tests/exercises/12_product_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "tests/exercises/checks/all.hpp"
#include "tests/exercises/checks/differences.hpp"

namespace engram::exercises::check_12 {
namespace {

struct Answer {
  std::function<std::vector<int>(const PairScores&, int k)> best;
};

/// The best `count` indices of a half, the best first.
std::vector<int> best_half(std::span<const double> half, int count) {
  std::vector<int> order(half.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, std::greater{}, [&](int i) { return half[static_cast<std::size_t>(i)]; });
  order.resize(static_cast<std::size_t>(std::min<int>(count, static_cast<int>(half.size()))));
  return order;
}

/// The best k among the pairs of `rows` and `columns`, the best first.
std::vector<int> best_pairs(const PairScores& scores, const std::vector<int>& rows, const std::vector<int>& columns,
                            int k) {
  std::vector<std::pair<double, int>> all;
  const int n = static_cast<int>(scores.first().size());
  for (const int i : rows)
    for (const int j : columns) all.emplace_back(scores.of(i, j), i * n + j);
  std::ranges::sort(all, std::greater{});
  std::vector<int> ids;
  for (int rank = 0; rank < std::min<int>(k, static_cast<int>(all.size())); ++rank)
    ids.push_back(all[static_cast<std::size_t>(rank)].second);
  return ids;
}

/// As many of the halves as `rows_of` and `columns_of` say for k.
Answer of_halves(const std::function<int(int)>& rows_of, const std::function<int(int)>& columns_of) {
  return {[=](const PairScores& scores, int k) {
    return best_pairs(scores, best_half(scores.first(), rows_of(k)), best_half(scores.second(), columns_of(k)), k);
  }};
}

void run(const Answer& answer, std::vector<Part>& parts) {
  struct Trial {
    int n, k;
  };
  for (const Trial& trial : {Trial{4, 1}, Trial{6, 4}, Trial{40, 16}, Trial{5, 5}}) {
    const auto n = static_cast<std::size_t>(trial.n);
    std::vector<double> first = some_numbers(n, 29), second = some_numbers(n, 30);
    for (double& score : second) score /= 5;  // the better half is the first: squares of candidates do not suffice
    const PairScores scores(first, second);
    const std::vector<int> ids = answer.best(scores, trial.k);
    parts.push_back(
        {fmt::format("ids of the best {} of {} times {} slots", trial.k, trial.n, trial.n), {ids.begin(), ids.end()}});
    parts.push_back({.name = fmt::format("scores asked for, for the best {} of {} times {}", trial.k, trial.n, trial.n),
                     .numbers = {static_cast<double>(scores.asked())},
                     .at_most = true});
  }
}

}  // namespace

Check check() {
  const auto k_of = [](int k) { return k; };
  const Answer right = of_halves(k_of, k_of);
  return make_check<Answer>(
      12, "12_product_keys", "the best k of n times n",
      {.answer = {best_slots},
       .truth = right,
       .mistakes =
           {{{[](const PairScores& scores, int k) {
               const std::vector<int> rows = best_half(scores.first(), k), columns = best_half(scores.second(), k);
               std::vector<int> ids;
               for (std::size_t rank = 0; rank < rows.size(); ++rank)
                 ids.push_back(rows[rank] * static_cast<int>(scores.first().size()) + columns[rank]);
               return ids;
             }},
             "you pair the best with the best, the second with the second, and so on. The best row with the second "
             "column may be better than the second pair: look at all k times k pairs of the best k of both halves."},
            {of_halves([](int) { return 1; }, k_of), "other rows than the best one have slots among the best k too."},
            {of_halves([](int) { return 1 << 20; }, [](int) { return 1 << 20; }),
             "the slots are right, and you looked at all n times n. A slot among the best k has its row among the best "
             "k of the first half: else k slots of its column would be better. Likewise its column."},
            {{[right](const PairScores& scores, int k) {
               std::vector<int> ids = right.best(scores, k);
               std::ranges::reverse(ids);
               return ids;
             }},
             "these are the right slots with the worst first. The best comes first."},
            {{[right](const PairScores& scores, int k) {
               std::vector<int> ids = right.best(scores, k);
               std::ranges::sort(ids);
               return ids;
             }},
             "these are the right slots, in the order of their ids. Sort them by score."},
            {{[right](const PairScores& scores, int k) {
               std::vector<int> ids = right.best(scores, k);
               const int n = static_cast<int>(scores.first().size());
               for (int& id : ids) id = id % n * n + id / n;
               return ids;
             }},
             "row and column are exchanged in the ids: slot (i, j) has the id i * n + j."}},
       .run = run});
}

}  // namespace engram::exercises::check_12
