#include "tests/exercises/10_slots.hpp"

#include <cmath>

#include "tests/exercises/checks/all.hpp"
#include "tests/exercises/checks/differences.hpp"

namespace engram::exercises::check_10 {
namespace {

struct Answer {
  std::function<Matrix(const SlotInputs&)> forward;
  std::function<void(const SlotInputs&, const Matrix& dy, Matrix& dkeys, Matrix& dvalues)> backward;
};

/// Where the weight of a slot is looked for: behind all positions, or, by mistake, at its own number; `list` where a
/// query's weights are a list of the positions that it sees and of the slots, `row` where they are a row of a matrix.
enum class Place { behind, list, row };

struct Rule {
  bool one_softmax = true, slots_masked = false, slots_scaled = true;
  Place place = Place::behind;
};

/// The weights of all queries: [positions, positions + slots].
Matrix weights_of(const SlotInputs& in, const Rule& rule) {
  const int positions = in.q.rows(), slots = in.slot_keys.rows();
  Matrix a(positions, positions + slots);
  for (int t = 0; t < positions; ++t) {
    double context = 0, persistent = 0;
    for (int j = 0; j <= t; ++j) {
      a(t, j) = std::exp(dot(in.q.row(t), in.k.row(j)) / std::sqrt(in.q.columns()));
      context += a(t, j);
    }
    for (int n = 0; n < slots && !(rule.slots_masked && n > t); ++n) {
      const double divisor = rule.slots_scaled ? std::sqrt(in.q.columns()) : 1;
      a(t, positions + n) = std::exp(dot(in.q.row(t), in.slot_keys.row(n)) / divisor);
      persistent += a(t, positions + n);
    }
    for (int i = 0; i < positions + slots; ++i)
      a(t, i) /= rule.one_softmax ? context + persistent : i < positions ? context : persistent;
  }
  return a;
}

/// The weight that query t is taken to give to slot n.
double slot_weight(const Matrix& a, int positions, int t, int n, Place place) {
  if (place == Place::list) return a(t, n <= t ? n : positions + n - t - 1);
  return a(t, place == Place::row ? n : positions + n);
}

Matrix forward(const SlotInputs& in, const Rule& rule) {
  const Matrix a = weights_of(in, rule);
  const int positions = in.q.rows();
  Matrix y(positions, in.q.columns());
  for (int t = 0; t < positions; ++t)
    for (int c = 0; c < y.columns(); ++c) {
      for (int j = 0; j < positions; ++j) y(t, c) += a(t, j) * in.v(j, c);
      for (int n = 0; n < in.slot_keys.rows(); ++n)
        y(t, c) += slot_weight(a, positions, t, n, rule.place) * in.slot_values(n, c);
    }
  return y;
}

void by_differences(const SlotInputs& inputs, const Matrix& dy, Matrix& dkeys, Matrix& dvalues) {
  SlotInputs in = inputs;
  dkeys = slopes(
      [&](const Matrix& at) {
        in.slot_keys = at;
        return dot(dy.numbers(), forward(in, {}).numbers());
      },
      inputs.slot_keys);
  in = inputs;
  dvalues = slopes(
      [&](const Matrix& at) {
        in.slot_values = at;
        return dot(dy.numbers(), forward(in, {}).numbers());
      },
      inputs.slot_values);
}

struct Flaw {
  bool last_query = false, mean_of_slots = false, scaled = true, average = false;
  Place place = Place::behind;
};

void flawed_backward(const Flaw& flaw, const SlotInputs& in, const Matrix& dy, Matrix& dkeys, Matrix& dvalues) {
  const Matrix a = weights_of(in, {});
  const int positions = in.q.rows(), slots = in.slot_keys.rows(), width = in.q.columns();
  dkeys = dvalues = Matrix(slots, width);
  for (int t = flaw.last_query ? positions - 1 : 0; t < positions; ++t) {
    double mean = 0;
    for (int j = 0; j <= t && !flaw.mean_of_slots; ++j) mean += a(t, j) * dot(dy.row(t), in.v.row(j));
    for (int n = 0; n < slots; ++n) mean += a(t, positions + n) * dot(dy.row(t), in.slot_values.row(n));
    for (int n = 0; n < slots; ++n) {
      const double weight = slot_weight(a, positions, t, n, flaw.place) / (flaw.average ? positions : 1);
      const double ds = weight * (dot(dy.row(t), in.slot_values.row(n)) - mean) / (flaw.scaled ? std::sqrt(width) : 1);
      for (int c = 0; c < width; ++c) {
        dkeys(n, c) += ds * in.q(t, c);
        dvalues(n, c) += weight * dy(t, c);
      }
    }
  }
}

void run(const Answer& answer, std::vector<Part>& parts) {
  const SlotInputs in{some_matrix(4, 3, 16), some_matrix(4, 3, 17), some_matrix(4, 3, 18), some_matrix(2, 3, 19),
                      some_matrix(2, 3, 20)};
  parts.push_back({"y of four positions and two slots", answer.forward(in).numbers(), 3});
  Matrix dkeys(2, 3, kUnwritten), dvalues(2, 3, kUnwritten);
  answer.backward(in, some_matrix(4, 3, 21), dkeys, dvalues);
  parts.push_back({"dslot_values of four positions and two slots", dvalues.numbers(), 3});
  parts.push_back({"dslot_keys of four positions and two slots", dkeys.numbers(), 3});
}

Answer with(const Rule& rule, const Flaw& flaw) {
  return {[rule](const SlotInputs& in) { return forward(in, rule); },
          [flaw](const SlotInputs& in, const Matrix& dy, Matrix& dkeys, Matrix& dvalues) {
            flawed_backward(flaw, in, dy, dkeys, dvalues);
          }};
}

constexpr const char* kAtNumber =
    "you take the weight at a[n] for slot n, which is that of position n. The weights of slots stand behind those of "
    "the positions: in one list of the query t at a[t + 1 + n].";

}  // namespace

Check check() {
  return make_check<Answer>(
      10, "10_slots", "persistent slots in attention",
      {.answer = {attention_with_slots, slots_backward},
       .truth = {[](const SlotInputs& in) { return forward(in, {}); }, by_differences},
       .mistakes =
           {{with({.one_softmax = false}, {}),
             "you have two softmaxes, one over positions and one over slots. There is one: a single sum in the "
             "denominator, so that slots and positions compete."},
            {with({.slots_masked = true}, {}),
             "slots have no position, so the causal mask does not concern them: the first query sees all of them."},
            {with({.slots_scaled = false}, {}), "scores of slots are divided by sqrt(width) too."},
            {with({}, {.last_query = true}),
             "these are the gradients that come from the last query. All queries share the slots: sum over them."},
            {with({}, {.mean_of_slots = true}),
             "the mean that softmax's derivative subtracts runs over everything that the softmax ran over: the "
             "positions j <= t as well."},
            {with({}, {.scaled = false}), "dslot_keys lacks the factor 1 / sqrt(width) of the scores."},
            {with({.place = Place::list}, {}), kAtNumber},
            {with({.place = Place::row}, {}), kAtNumber},
            {with({}, {.place = Place::list}), kAtNumber},
            {with({}, {.place = Place::row}), kAtNumber},
            {with({}, {.average = true}), "you have the mean over queries. The gradient is their sum."}},
       .run = run});
}

}  // namespace engram::exercises::check_10
