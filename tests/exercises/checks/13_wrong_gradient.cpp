#include "tests/exercises/13_wrong_gradient.hpp"

#include <cmath>

#include "tests/exercises/checks/all.hpp"
#include "tests/exercises/checks/differences.hpp"

namespace engram::exercises::check_13 {
namespace {

struct Answer {
  std::function<std::vector<double>(const Block&, const std::vector<double>& x)> forward;
  std::function<BlockGradients(const Block&, const std::vector<double>& x, const std::vector<double>& dy)> backward;
};

double mean_product(const std::vector<double>& a, const std::vector<double>& b) {
  return dot(a, b) / static_cast<double>(a.size());
}

/// What the forward pass computes on its way.
struct Passed {
  double deviation = 0;
  std::vector<double> norm, before, inner;
};

Passed pass(const Block& block, const std::vector<double>& x) {
  Passed passed;
  const std::vector<double> ones(x.size(), 1.0);
  passed.norm = x;
  for (double& number : passed.norm) number -= mean_product(x, ones);
  passed.deviation = std::sqrt(mean_product(passed.norm, passed.norm) + 1e-5);
  for (double& number : passed.norm) number /= passed.deviation;
  for (int r = 0; r < block.w1.rows(); ++r) {
    passed.before.push_back(dot(block.w1.row(r), passed.norm));
    passed.inner.push_back(std::tanh(passed.before.back()));
  }
  return passed;
}

std::vector<double> forward(const Block& block, const std::vector<double>& x) {
  const Passed passed = pass(block, x);
  std::vector<double> y;
  for (std::size_t i = 0; i < x.size(); ++i) y.push_back(x[i] + dot(block.w2.row(static_cast<int>(i)), passed.inner));
  return y;
}

BlockGradients by_differences(const Block& block, const std::vector<double>& x, const std::vector<double>& dy) {
  return {slopes(
              [&](const Matrix& at) {
                return dot(dy, forward({at, block.w2}, x));
              },
              block.w1),
          slopes(
              [&](const Matrix& at) {
                return dot(dy, forward({block.w1, at}, x));
              },
              block.w2),
          slopes([&](const std::vector<double>& at) { return dot(dy, forward(block, at)); }, x)};
}

struct Flaw {
  bool tanh_of_input = false, fixed_deviation = false, no_sum = false;
};

BlockGradients flawed(const Flaw& flaw, const Block& block, const std::vector<double>& x,
                      const std::vector<double>& dy) {
  const Passed passed = pass(block, x);
  BlockGradients found = by_differences(block, x, dy);
  std::vector<double> dbefore, dnorm(x.size());
  for (int r = 0; r < block.w1.rows(); ++r) {
    double dinner = 0;
    for (int c = 0; c < block.w2.rows(); ++c) dinner += block.w2(c, r) * dy[std::size_t(c)];
    const double t = (flaw.tanh_of_input ? passed.before : passed.inner)[std::size_t(r)];
    dbefore.push_back((1 - t * t) * dinner);
    for (int c = 0; c < block.w1.columns(); ++c) {
      found.w1(r, c) = dbefore.back() * passed.norm[std::size_t(c)];
      dnorm[std::size_t(c)] += block.w1(r, c) * dbefore.back();
    }
  }
  const std::vector<double> ones(x.size(), 1.0);
  const double along = flaw.fixed_deviation ? 0 : mean_product(dnorm, passed.norm);
  for (std::size_t i = 0; i < x.size(); ++i)
    found.x[i] =
        (dnorm[i] - mean_product(dnorm, ones) - passed.norm[i] * along) / passed.deviation + (flaw.no_sum ? 0 : dy[i]);
  return found;
}

void run(const Answer& answer, std::vector<Part>& parts) {
  const Block block{some_matrix(3, 4, 31), some_matrix(4, 3, 32)};
  const std::vector<double> x = some_numbers(4, 33), dy = some_numbers(4, 34);
  parts.push_back({.name = "block_forward, which was right",
                   .numbers = answer.forward(block, x),
                   .hint = "the forward pass was right; only the backward pass is to be mended."});
  const BlockGradients found = answer.backward(block, x, dy);
  parts.push_back({"the gradient of w2", found.w2.numbers(), 3});
  parts.push_back({"the gradient of w1 (that of w2 is right)", found.w1.numbers(), 4});
  parts.push_back({"the gradient of x (those of w1 and w2 are right)", found.x});
}

Answer with(const Flaw& flaw) {
  return {forward, [flaw](const Block& block, const std::vector<double>& x, const std::vector<double>& dy) {
            return flawed(flaw, block, x, dy);
          }};
}

}  // namespace

Check check() {
  return make_check<Answer>(
      13, "13_wrong_gradient", "find the wrong gradient",
      {.answer = {block_forward, block_backward},
       .truth = {forward, by_differences},
       .mistakes =
           {{with({.tanh_of_input = true, .fixed_deviation = true}),
             "the gradient goes from y through w2, tanh, w1 and the norm to x. Up to w2 it is right, at w1 it is "
             "wrong: what lies between the two? There may be another mistake behind it."},
            {with({.tanh_of_input = true}),
             "the gradient goes from y through w2, tanh, w1 and the norm to x. Up to w2 it is right, at w1 it is "
             "wrong: what lies between the two?"},
            {with({.fixed_deviation = true}),
             "the first mistake is mended. Behind w1 come the norm and the sum x + ...: does everything in the norm "
             "that depends on x have a derivative?"},
            {with({.no_sum = true}),
             "x goes into y directly as well: dy must be added to what came through the norm."}},
       .run = run});
}

}  // namespace engram::exercises::check_13
