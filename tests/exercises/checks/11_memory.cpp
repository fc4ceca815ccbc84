#include "tests/exercises/11_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "tests/exercises/checks/all.hpp"
#include "tests/exercises/checks/differences.hpp"

namespace engram::exercises::check_11 {
namespace {

struct Answer {
  std::function<Matrix(const Matrix& memory, const Matrix& states, int length)> next;
  std::function<Matrix(const Matrix& by_distance, int memory_rows)> by_key;
  std::function<void(const Matrix&, const Matrix&, const Matrix&, const Matrix&, Matrix&, Matrix&)> backward;
};

Matrix joined_rows(const Matrix& memory, const Matrix& states) {
  std::vector<double> numbers = memory.numbers();
  numbers.insert(numbers.end(), states.numbers().begin(), states.numbers().end());
  return Matrix(memory.rows() + states.rows(), states.columns(), std::move(numbers));
}

/// `count` rows from `begin` on.
Matrix cut(const Matrix& rows, int begin, int count) {
  Matrix result(count, rows.columns());
  for (int r = 0; r < count; ++r) std::ranges::copy(rows.row(begin + r), result.row(r).begin());
  return result;
}

Matrix right_next(const Matrix& memory, const Matrix& states, int length) {
  const Matrix all = joined_rows(memory, states);
  const int count = std::min(length, all.rows());
  return cut(all, all.rows() - count, count);
}

enum class Distances { right, without_memory, from_the_far_end, unmasked };

Matrix by_key(const Matrix& by_distance, int memory_rows, Distances how) {
  Matrix scores(by_distance.rows(), by_distance.columns());
  for (int i = 0; i < scores.rows(); ++i)
    for (int j = 0; j < scores.columns(); ++j) {
      const int distance = (how == Distances::without_memory ? i : memory_rows + i) - j;
      if (how == Distances::unmasked)
        scores(i, j) = by_distance(i, std::abs(distance));
      else if (distance >= 0)
        scores(i, j) = by_distance(i, how == Distances::from_the_far_end ? scores.columns() - 1 - distance : distance);
    }
  return scores;
}

double loss_of(const Matrix& memory, const Matrix& states, const Matrix& w, const Matrix& dkeys) {
  const Matrix all = joined_rows(memory, states);
  double sum = 0;
  for (int r = 0; r < all.rows(); ++r)
    for (int o = 0; o < w.rows(); ++o) sum += dkeys(r, o) * dot(all.row(r), w.row(o));
  return sum;
}

enum class Rows { right, no_memory_in_w, first_rows };

void backward(const Matrix& memory, const Matrix& states, const Matrix& w, const Matrix& dkeys, Matrix& dstates,
              Matrix& dw, Rows how) {
  const Matrix blank(memory.rows(), memory.columns());
  dw = slopes(
      [&](const Matrix& at) { return loss_of(how == Rows::no_memory_in_w ? blank : memory, states, at, dkeys); }, w);
  const Matrix all = slopes([&](const Matrix& at) { return loss_of({}, at, w, dkeys); }, joined_rows(memory, states));
  dstates = cut(all, how == Rows::first_rows ? 0 : memory.rows(), states.rows());
}

void run(const Answer& answer, std::vector<Part>& parts) {
  struct Trial {
    int memory, states, length;
  };
  for (const Trial& trial : {Trial{0, 3, 4}, Trial{3, 3, 4}, Trial{4, 3, 2}}) {
    const Matrix next = answer.next(some_matrix(trial.memory, 2, 22), some_matrix(trial.states, 2, 23), trial.length);
    parts.push_back(
        {fmt::format("the last {} rows of a memory of {} and {} states", trial.length, trial.memory, trial.states),
         next.numbers(), 2});
  }
  for (const int memory : {0, 2}) {
    const Matrix scores = answer.by_key(some_matrix(3, 3 + memory, 24), memory);
    parts.push_back({fmt::format("scores by key of three queries behind {} rows of memory", memory), scores.numbers(),
                     std::size_t(3 + memory)});
  }
  Matrix dstates(3, 2, kUnwritten), dw(2, 2, kUnwritten);
  answer.backward(some_matrix(3, 2, 25), some_matrix(3, 2, 26), some_matrix(2, 2, 27), some_matrix(6, 2, 28), dstates,
                  dw);
  parts.push_back({"dw, of three rows of memory and three of states", dw.numbers(), 2});
  parts.push_back({"dstates, of three rows of memory and three of states", dstates.numbers(), 2});
}

Answer with(const std::function<Matrix(const Matrix&, const Matrix&, int)>& next, Distances distances, Rows rows) {
  return {
      next,
      [distances](const Matrix& by_distance, int memory_rows) { return by_key(by_distance, memory_rows, distances); },
      [rows](const Matrix& memory, const Matrix& states, const Matrix& w, const Matrix& dkeys, Matrix& dstates,
             Matrix& dw) { backward(memory, states, w, dkeys, dstates, dw, rows); }};
}

}  // namespace

Check check() {
  const auto first_rows = [](const Matrix& memory, const Matrix& states, int length) {
    const Matrix all = joined_rows(memory, states);
    return cut(all, 0, std::min(length, all.rows()));
  };
  const auto states_only = [](const Matrix&, const Matrix& states, int length) {
    const int count = std::min(length, states.rows());
    return cut(states, states.rows() - count, count);
  };
  return make_check<Answer>(
      11, "11_memory", "a memory carried over segments",
      {.answer = {next_memory, scores_by_key, keys_backward},
       .truth = with(right_next, Distances::right, Rows::right),
       .mistakes =
           {{with(first_rows, Distances::right, Rows::right), "these are the oldest rows. The last ones are kept."},
            {with(states_only, Distances::right, Rows::right),
             "rows of the old memory stay while there is room: a memory may be longer than a segment."},
            {with(right_next, Distances::without_memory, Rows::right),
             "query i stands behind the memory: its distance to key j is memory_rows + i - j."},
            {with(right_next, Distances::from_the_far_end, Rows::right),
             "you count distances from the far end. Column d of by_distance belongs to the distance d; 0 is the "
             "query's "
             "own position."},
            {with(right_next, Distances::unmasked, Rows::right),
             "keys behind the query lie in the future: their score is 0 here."},
            {with(right_next, Distances::right, Rows::no_memory_in_w),
             "the memory gets no gradient, but w does from it: w made keys of the memory's rows too."},
            {with(right_next, Distances::right, Rows::first_rows),
             "the first rows of dkeys belong to the memory, which is a constant. Those of the states come behind."}},
       .run = run});
}

}  // namespace engram::exercises::check_11
