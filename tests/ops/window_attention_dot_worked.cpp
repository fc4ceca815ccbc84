/// Worked numbers and properties of attention by dot products over short windows: [key-value-predict 1.7, 2, 8.2],
/// items 10, 13 and 14.

#include <cmath>
#include <limits>

#include "tests/harness/catch.hpp"
#include "tests/ops/window_runs.hpp"

namespace engram::harness::window_attention_dot_worked_test {
namespace {

using reference::array;
using reference::constant;
using reference::fill;
using reference::zeros;

enum Argument : std::size_t { kKeys, kQueries, kValues, kPositionKeys, kPositionValues, kPreceding };
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Arguments without a pattern; positions of one article, of which all that is carried is a part.
std::vector<Array64> some_arguments(std::int64_t streams, std::int64_t carried, std::int64_t block, std::int64_t width,
                                    std::int64_t window) {
  return {fill(1, {streams, carried + block, width}),
          fill(2, {streams, block, width}),
          fill(3, {streams, carried + block, width}),
          fill(4, {window, width}),
          fill(5, {window, width}),
          positions_of_one_article(streams, carried, block)};
}

WindowRun run_dot(const WindowCall& call, const std::vector<Array64>& x, const Array64& cotangent,
                  std::int64_t window) {
  return run_window(call, x, cotangent, [&](std::span<const Variable> v, const Tensor& preceding) {
    return window_attention_dot(v[0], v[1], v[2], v[3], v[4], preceding, window);
  });
}

TEST_CASE("dot window: without keys and positions all words count alike", "[window][worked]") {
  const WindowCall call = each_window_call();
  std::vector<Array64> x = some_arguments(2, 0, 7, 5, 4);
  x[kKeys] = zeros(x[kKeys].shape);
  x[kPositionKeys] = zeros({4, 5});
  x[kPositionValues] = {};
  const WindowRun run = run_dot(call, x, zeros({2, 7, 5}), 4);
  for (std::int64_t b = 0; b < 2; ++b)
    for (std::int64_t t = 0; t < 7; ++t) {
      const std::int64_t seen = std::min<std::int64_t>(t + 1, 4);
      for (std::int64_t c = 0; c < 4; ++c)
        CHECK(run.weights.at(b, t, c) ==
              Approx(c < 4 - seen ? 0 : 1.0 / static_cast<double>(seen)).epsilon(call.tolerance));
      for (std::int64_t i = 0; i < 5; ++i) {
        double sum = 0;
        for (std::int64_t j = t + 1 - seen; j <= t; ++j) sum += x[kValues].at(b, j, i);
        CHECK(run.context.at(b, t, i) ==
              Approx(sum / static_cast<double>(seen)).epsilon(call.tolerance).margin(call.tolerance));
      }
    }
}

TEST_CASE("dot window: the newest word takes the last row of the positions", "[window][worked]") {
  const WindowCall call = each_window_call();
  // Keys of zeros: the positions alone decide. A query of 1 and keys of ln 1, ln 2, ln 5.
  const std::vector<Array64> x{zeros({1, 3, 1}),
                               constant(1, {1, 3, 1}),
                               array({1, 3, 1}, {1, 10, 100}),
                               array({3, 1}, {0, std::log(2.0), std::log(5.0)}),
                               array({3, 1}, {1000, 2000, 3000}),
                               array({1, 3}, {0, 1, 2})};
  const WindowRun run = run_dot(call, x, array({1, 3, 1}, {0, 0, 1}), 3);
  const double weights[3][3] = {{0, 0, 1}, {0, 2.0 / 7, 5.0 / 7}, {1.0 / 8, 2.0 / 8, 5.0 / 8}};
  for (std::int64_t t = 0; t < 3; ++t)
    for (std::int64_t c = 0; c < 3; ++c)
      CHECK(run.weights.at(0, t, c) == Approx(weights[t][c]).epsilon(call.tolerance));
  CHECK(run.context.at(0, 0, 0) == Approx(3001).epsilon(call.tolerance));
  CHECK(run.context.at(0, 1, 0) == Approx((2 * 2001 + 5 * 3010) / 7.0).epsilon(call.tolerance));
  CHECK(run.context.at(0, 2, 0) == Approx((1001 + 2 * 2010 + 5 * 3100) / 8.0).epsilon(call.tolerance));
  const double mean = (1001 + 2 * 2010 + 5 * 3100) / 8.0;
  const double slopes[3] = {(1001 - mean) / 8, (2010 - mean) / 4, (3100 - mean) * 5 / 8};
  for (std::int64_t c = 0; c < 3; ++c) {
    CHECK(run.gradients[kPositionKeys].at(c, 0) == Approx(slopes[c]).epsilon(10 * call.tolerance));
    CHECK(run.gradients[kKeys].at(0, c, 0) == Approx(slopes[c]).epsilon(10 * call.tolerance));
    CHECK(run.gradients[kPositionValues].at(c, 0) == Approx(weights[2][c]).epsilon(call.tolerance));
    CHECK(run.gradients[kValues].at(0, c, 0) == Approx(weights[2][c]).epsilon(call.tolerance));
  }
  CHECK(run.gradients[kQueries].at(0, 2, 0) ==
        Approx(slopes[1] * std::log(2.0) + slopes[2] * std::log(5.0)).epsilon(10 * call.tolerance));
}

TEST_CASE("dot window of one position: the position's own value, whatever the scores", "[window][worked]") {
  const WindowCall call = each_window_call();
  const std::vector<Array64> x = some_arguments(2, 3, 6, 17, 1);
  const WindowRun run = run_dot(call, x, fill(6, {2, 6, 17}), 1);
  CHECK(run.weights.data == std::vector<double>(12, 1.0));
  for (const Argument input : {kKeys, kQueries, kPositionKeys}) CHECK(all_zero(run.gradients[input]));
  CHECK_FALSE(all_zero(run.gradients[kValues]));
}

TEST_CASE("dot window: a block is its pieces with the rows before them carried", "[window][worked]") {
  const WindowCall call = each_window_call();
  const std::int64_t window = GENERATE(1, 5, 15, 25);
  const std::vector<Array64> x = some_arguments(2, 0, 20, 7, window);
  const Array64 whole = run_dot(call, x, zeros({2, 20, 7}), window).context;
  for (std::int64_t begin = 0; begin < 20; begin += 5) {
    const std::int64_t oldest = std::max<std::int64_t>(0, begin - window);
    const std::vector<Array64> piece{positions_of(x[kKeys], oldest, begin + 5),
                                     positions_of(x[kQueries], begin, begin + 5),
                                     positions_of(x[kValues], oldest, begin + 5),
                                     x[kPositionKeys],
                                     x[kPositionValues],
                                     positions_of(x[kPreceding], begin, begin + 5)};
    check_same(run_dot(call, piece, zeros({2, 5, 7}), window).context, positions_of(whole, begin, begin + 5), 1e-6);
  }
}

TEST_CASE("dot window: rows of an earlier sequence are not looked at", "[window][worked]") {
  const WindowCall call = each_window_call();
  const std::int64_t window = GENERATE(1, 3, 50);
  std::vector<Array64> x = some_arguments(2, 3, 5, 21, window);
  for (std::int64_t b = 0; b < 2; ++b)
    for (std::int64_t t = 0; t < 5; ++t) x[kPreceding].at(b, t) = static_cast<double>(t);  // all carried rows are older
  for (const Argument input : {kKeys, kValues})
    for (std::int64_t b = 0; b < 2; ++b)
      for (std::int64_t row = 0; row < 3; ++row)
        for (std::int64_t i = 0; i < 21; ++i) x[input].at(b, row, i) = kNaN;
  const WindowRun run = run_dot(call, x, fill(7, {2, 5, 21}), window);
  CHECK(all_finite(run.context));
  for (const Array64& gradient : run.gradients) CHECK(all_finite(gradient));
  for (const Argument input : {kKeys, kValues})
    for (std::int64_t row = 0; row < 3; ++row)
      for (std::int64_t i = 0; i < 21; ++i) CHECK(run.gradients[input].at(1, row, i) == 0);
  for (std::int64_t i = 0; i < 21; ++i)  // the first position sees itself alone
    CHECK(run.context.at(0, 0, i) ==
          Approx(x[kValues].at(0, 3, i) + x[kPositionValues].at(window - 1, i)).epsilon(call.tolerance).margin(1e-7));
}

}  // namespace
}  // namespace engram::harness::window_attention_dot_worked_test
