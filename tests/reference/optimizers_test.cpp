/// The update rules and schedules against the numbers of [all-attention 12] (T9, T10, T16), and the trim and
/// span-loss tables (T11, 1.6).

#include <algorithm>
#include <cmath>

#include "tests/harness/catch.hpp"
#include "tests/reference/optimizers.hpp"
#include "tests/reference/span_rules.hpp"

namespace engram::reference::optimizers_test {
namespace {

TEST_CASE("T9: Adagrad shrinks the step, not the gradient", "[reference]") {
  Array64 value = constant(1, {2}), accumulator = zeros({2});
  const AdagradOptions options{0.1, 0.03};
  adagrad(value, array({2}, {3, 4}), accumulator, options);
  for (const double p : value.data) CHECK(p == Approx(0.9994).margin(1e-9).epsilon(0));
  CHECK(accumulator.data == std::vector<double>{9, 16});
  adagrad(value, array({2}, {0.003, 0.004}), accumulator, options);
  for (const double p : value.data) CHECK(p == Approx(0.9993).margin(1e-9).epsilon(0));
  CHECK(accumulator.data[0] == Approx(9.000009).margin(1e-12).epsilon(0));
  CHECK(accumulator.data[1] == Approx(16.000016).margin(1e-12).epsilon(0));

  Array64 clipped = constant(1, {2}), sums = zeros({2});
  adagrad(clipped, array({2}, {3, 4}), sums, {0.1, 0.03, Clip::gradient});
  for (const double p : clipped.data) CHECK(p == Approx(0.9).margin(1e-8).epsilon(0));
  CHECK(sums.data[0] == Approx(0.018 * 0.018).epsilon(1e-8));
}

TEST_CASE("Adagrad leaves a tensor with a zero gradient alone", "[reference]") {
  Array64 value = constant(1, {2}), accumulator = zeros({2});
  adagrad(value, zeros({2}), accumulator, {0.1, 0.03});
  CHECK(value.data == std::vector<double>{1, 1});
}

TEST_CASE("T16: a span under the span loss alone walks to zero, whatever lambda is", "[reference]") {
  for (const double lambda : {1e-7, 1e-4}) {
    Array64 span = constant(0.5, {1}), accumulator = zeros({1});
    const Array64 gradient = constant(lambda * 8192 / 8, {1});
    std::vector<double> path;
    for (int step = 0; step < 40; ++step) {
      adagrad(span, gradient, accumulator, {0.07});
      span.data[0] = std::clamp(span.data[0], 0.0, 1.0);
      path.push_back(span.data[0]);
    }
    CHECK(path[0] == Approx(0.43).margin(2e-7).epsilon(0));
    CHECK(path[1] == Approx(0.3805025).margin(3e-7).epsilon(0));
    CHECK(path[2] == Approx(0.3400880).margin(4e-7).epsilon(0));
    CHECK(path.back() == 0);
  }
}

TEST_CASE("Adam, SGD and the global clip follow their formulas", "[reference]") {
  // With a constant gradient both corrected moments are exact from the first step: every step is rate * sign.
  Array64 value = constant(1, {2}), first = zeros({2}), second = zeros({2});
  for (int step = 1; step <= 3; ++step) adam(value, array({2}, {0.5, -2}), first, second, step, {0.01});
  CHECK(value.data[0] == Approx(0.97).margin(1e-8).epsilon(0));
  CHECK(value.data[1] == Approx(1.03).margin(1e-8).epsilon(0));
  // A gradient that changes tells the two rates apart: m = 0.9*0.1*1 + 0.1*3, v = 0.999*0.001*1 + 0.001*9.
  Array64 one = zeros({1}), m = zeros({1}), v = zeros({1});
  adam(one, constant(1, {1}), m, v, 1, {1});
  CHECK(one.data[0] == Approx(-1).margin(2e-8).epsilon(0));
  adam(one, constant(3, {1}), m, v, 2, {1});
  CHECK(m.data[0] == Approx(0.39).epsilon(1e-12));
  CHECK(v.data[0] == Approx(0.009999).epsilon(1e-12));
  CHECK(one.data[0] == Approx(-1 - 0.39 / 0.19 / std::sqrt(0.009999 / 0.001999)).margin(1e-7).epsilon(0));

  // A gradient as large as epsilon shows which root epsilon is added to: 1e-3 + 1e-3, or sqrt(0.001) 1e-3 + 1e-3.
  for (const bool corrected : {true, false}) {
    Array64 p = zeros({1}), mean = zeros({1}), square = zeros({1});
    adam(p, constant(1e-3, {1}), mean, square, 1, {.rate = 1, .epsilon = 1e-3, .corrected_root = corrected});
    CHECK(p.data[0] == Approx(corrected ? -0.5 : -0.0306534300317).epsilon(1e-11));
  }

  Array64 moved = constant(1, {1}), velocity = zeros({1});
  sgd(moved, constant(1, {1}), velocity, 0.1, 0.9);
  sgd(moved, constant(1, {1}), velocity, 0.1, 0.9);
  CHECK(moved.data[0] == Approx(1 - 0.1 - 0.19).epsilon(1e-14));

  // By hand: speeds -0.1 and -0.19, points 0.9 and 0.71, 0.9 of the speed ahead of them.
  Array64 ahead = constant(1, {1}), point = ahead, speed = zeros({1});
  nesterov(ahead, point, constant(1, {1}), speed, 0.1, 0.9);
  CHECK(ahead.data[0] == Approx(0.81).epsilon(1e-14));
  nesterov(ahead, point, constant(1, {1}), speed, 0.1, 0.9);
  CHECK(ahead.data[0] == Approx(0.539).epsilon(1e-14));

  std::vector<Array64> gradients{array({1}, {3}), array({1}, {4})};
  CHECK(clip_global(gradients, 1) == Approx(5).epsilon(1e-15));
  CHECK(gradients[0].data[0] == Approx(3 / 5.000001).epsilon(1e-14));
  CHECK(gradients[1].data[0] == Approx(4 / 5.000001).epsilon(1e-14));
  std::vector<Array64> small{array({1}, {0.3})};
  clip_global(small, 1);
  CHECK(small[0].data[0] == 0.3);
}

TEST_CASE("T10: warm-up", "[reference]") {
  CHECK(warmup_rate(0.07, 1, 32000) == Approx(2.1875e-6).epsilon(1e-14));
  CHECK(warmup_rate(0.07, 16000, 32000) == Approx(0.035).epsilon(1e-14));
  CHECK(warmup_rate(0.07, 32000, 32000) == 0.07);
  CHECK(warmup_rate(0.07, 1000000, 32000) == 0.07);
  CHECK(warmup_rate(0.07, 1, 0) == 0.07);
}

TEST_CASE("T11: what the layer's spans leave to compute and to cache", "[reference]") {
  struct Row {
    double span;
    std::int64_t length, ramp, size, trim, window, cache;
  };
  const std::vector<Row> table{{0, 8192, 32, 32, 8128, 64, 128},    {0.25, 8192, 32, 2080, 6080, 2112, 2176},
                               {1, 8192, 32, 8192, 0, 8192, 8192},  {0, 100, 32, 32, 64, 36, 100},
                               {0, 32, 32, 32, 0, 32, 32},          {0, 16, 32, 16, 0, 16, 16},
                               {0.5, 1024, 32, 544, 448, 576, 640}, {0, 2048, 32, 32, 1984, 64, 128}};
  for (const Row& row : table) {
    INFO("zeta " << row.span << ", S " << row.length << ", R " << row.ramp);
    const SpanWindow got = span_window({0.0, row.span}, row.length, row.ramp);
    CHECK(got.size == row.size);
    CHECK(got.trim == row.trim);
    CHECK(got.window == row.window);
    CHECK(got.cache == row.cache);
  }
}

TEST_CASE("the span loss of the worked value", "[reference]") {
  const std::vector<std::vector<double>> full(36, std::vector<double>(8, 1.0));
  CHECK(span_loss(1e-7, 8192, full) == Approx(0.0294912).epsilon(1e-12));
  CHECK(span_loss(1e-7, 8192, {{1, 0, 0, 0, 0, 0, 0, 0}}) == Approx(1.024e-4).epsilon(1e-12));
}

}  // namespace
}  // namespace engram::reference::optimizers_test
