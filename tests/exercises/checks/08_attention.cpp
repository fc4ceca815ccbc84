#include "tests/exercises/08_attention.hpp"

#include <fmt/format.h>

#include <cmath>

#include "tests/exercises/checks/all.hpp"
#include "tests/exercises/checks/differences.hpp"

namespace engram::exercises::check_08 {
namespace {

struct Answer {
  std::function<Matrix(const Matrix&, const Matrix&, const Matrix&)> forward;
  std::function<void(const Matrix&, const Matrix&, const Matrix&, const Matrix&, Matrix&, Matrix&, Matrix&)> backward;
};

/// What is seen, and how scores become weights.
struct Rule {
  bool scaled = true, masked = true, zero_scores = false, sees_itself = true;
};

/// The weights of all queries, [positions, positions].
Matrix weights_of(const Matrix& q, const Matrix& k, const Rule& rule) {
  const int n = q.rows();
  Matrix a(n, n);
  for (int t = 0; t < n; ++t) {
    double sum = 0;
    for (int j = 0; j < n; ++j) {
      const bool seen = !rule.masked || j < t || (j == t && rule.sees_itself);
      if (!seen && !rule.zero_scores) continue;
      const double score = dot(q.row(t), k.row(j)) / (rule.scaled ? std::sqrt(q.columns()) : 1);
      a(t, j) = std::exp(seen ? score : 0);
      sum += a(t, j);
    }
    for (int j = 0; j < n; ++j) a(t, j) /= sum;
  }
  return a;
}

Matrix outputs_of(const Matrix& a, const Matrix& v) {
  Matrix y(a.rows(), v.columns());
  for (int t = 0; t < a.rows(); ++t)
    for (int j = 0; j < a.columns(); ++j)
      for (int c = 0; c < v.columns(); ++c) y(t, c) += a(t, j) * v(j, c);
  return y;
}

Matrix forward(const Matrix& q, const Matrix& k, const Matrix& v, const Rule& rule) {
  return outputs_of(weights_of(q, k, rule), v);
}

void by_differences(const Matrix& q, const Matrix& k, const Matrix& v, const Matrix& dy, Matrix& dq, Matrix& dk,
                    Matrix& dv) {
  const auto loss = [&](const Matrix& a, const Matrix& b, const Matrix& c) {
    return dot(dy.numbers(), forward(a, b, c, {}).numbers());
  };
  dq = slopes([&](const Matrix& at) { return loss(at, k, v); }, q);
  dk = slopes([&](const Matrix& at) { return loss(q, at, v); }, k);
  dv = slopes([&](const Matrix& at) { return loss(q, k, at); }, v);
}

struct Flaw {
  bool scaled = true, minus_mean = true, turned_weights = false, sees_future = false, times_weight = true;
};

void flawed_backward(const Flaw& flaw, const Matrix& q, const Matrix& k, const Matrix& v, const Matrix& dy, Matrix& dq,
                     Matrix& dk, Matrix& dv) {
  const Matrix a = weights_of(q, k, {.masked = !flaw.sees_future});
  const int n = q.rows();
  dq = dk = dv = Matrix(n, q.columns());
  for (int t = 0; t < n; ++t) {
    double mean = 0;
    for (int j = 0; j < n && flaw.minus_mean; ++j) mean += a(t, j) * dot(dy.row(t), v.row(j));
    for (int j = 0; j < n; ++j) {
      const double weight = flaw.times_weight ? a(t, j) : j <= t ? 1 : 0;
      const double ds = weight * (dot(dy.row(t), v.row(j)) - mean) / (flaw.scaled ? std::sqrt(q.columns()) : 1);
      for (int c = 0; c < q.columns(); ++c) {
        dq(t, c) += ds * k(j, c);
        dk(j, c) += ds * q(t, c);
        dv(j, c) += (flaw.turned_weights ? a(j, t) : a(t, j)) * dy(t, c);
      }
    }
  }
}

void run(const Answer& answer, std::vector<Part>& parts) {
  for (const int n : {1, 2, 5}) {
    const Matrix q = some_matrix(n, 3, 10), k = some_matrix(n, 3, 11), v = some_matrix(n, 3, 12);
    parts.push_back({fmt::format("y of {} position{}", n, n == 1 ? "" : "s"), answer.forward(q, k, v).numbers(), 3});
  }
  for (const int n : {2, 5}) {
    const Matrix q = some_matrix(n, 3, 10), k = some_matrix(n, 3, 11), v = some_matrix(n, 3, 12);
    Matrix dq(n, 3, kUnwritten), dk(n, 3, kUnwritten), dv(n, 3, kUnwritten);
    answer.backward(q, k, v, some_matrix(n, 3, 13), dq, dk, dv);
    parts.push_back({fmt::format("dv of {} positions", n), dv.numbers(), 3});
    parts.push_back({fmt::format("dq of {} positions", n), dq.numbers(), 3});
    parts.push_back({fmt::format("dk of {} positions", n), dk.numbers(), 3});
  }
}

Answer with(const Rule& rule, const Flaw& flaw) {
  return {[rule](const Matrix& q, const Matrix& k, const Matrix& v) { return forward(q, k, v, rule); },
          [flaw](const Matrix& q, const Matrix& k, const Matrix& v, const Matrix& dy, Matrix& dq, Matrix& dk,
                 Matrix& dv) { flawed_backward(flaw, q, k, v, dy, dq, dk, dv); }};
}

}  // namespace

Check check() {
  return make_check<Answer>(
      8, "08_attention", "causal attention of one head",
      {.answer = {attention, attention_backward},
       .truth = {[](const Matrix& q, const Matrix& k, const Matrix& v) { return forward(q, k, v, {}); },
                 by_differences},
       .mistakes =
           {{with({.scaled = false}, {}), "the scores are not divided by sqrt(width)."},
            {with({.masked = false}, {}),
             "your queries see the future: query t must sum over the positions j <= t only, in the softmax too."},
            {with({.zero_scores = true}, {}),
             "positions in the future have the score 0, and so the weight e^0 before the division. They must have no "
             "weight: leave them out of both sums."},
            {with({.sees_itself = false}, {}), "position t sees itself: j <= t, not j < t."},
            {with({}, {.scaled = false}),
             "the forward pass divided scores by sqrt(width), so dq and dk have that factor too."},
            {with({}, {.minus_mean = false}),
             "the scores went through a softmax. Its derivative subtracts the mean of the gradients with the weights "
             "a, as in exercise 1: ds = a (g - sum of a g)."},
            {with({}, {.times_weight = false}),
             "softmax's derivative has the factor a in front, as in exercise 1: ds = a (g - sum of a g). You have "
             "g - sum of a g."},
            {with({}, {.turned_weights = true}),
             "dv(j) collects from the queries t that saw j, with the weight a(t, j). You took a(j, t)."},
            {with({}, {.sees_future = true}), "the forward pass masks the future, and the backward pass does not."}},
       .run = run});
}

}  // namespace engram::exercises::check_08
