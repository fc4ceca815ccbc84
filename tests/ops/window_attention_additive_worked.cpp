/// Worked numbers and properties of additive attention over short windows: [key-value-predict 8.2],
/// items 1 to 4, 13 and 14, and section 7.

#include <cmath>
#include <limits>

#include "tests/harness/catch.hpp"
#include "tests/ops/window_runs.hpp"
#include "tests/reference/window_attention.hpp"

namespace engram::harness::window_attention_additive_worked_test {
namespace {

using reference::array;
using reference::constant;
using reference::fill;
using reference::zeros;

enum Argument : std::size_t { kKeys, kQueries, kVector, kValues, kPreceding };
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Arguments without a pattern; positions of one article, of which all that is carried is a part.
std::vector<Array64> some_arguments(std::int64_t streams, std::int64_t carried, std::int64_t block,
                                    std::int64_t width) {
  return {fill(1, {streams, carried + block, width}), fill(2, {streams, block, width}), fill(3, {width}),
          fill(4, {streams, carried + block, width}), positions_of_one_article(streams, carried, block)};
}

/// x: keys, queries, score vector, values, preceding.
WindowRun run_additive(const WindowCall& call, const std::vector<Array64>& x, const Array64& cotangent,
                       const AdditiveWindow& options) {
  return run_window(call, x, cotangent, [&](std::span<const Variable> v, const Tensor& preceding) {
    return window_attention_additive(v[0], v[1], v[2], v[3], preceding, options);
  });
}

TEST_CASE("additive window of one position: the weight is 1 and the scores get no gradient", "[window][worked]") {
  const WindowCall call = each_window_call();
  const std::vector<Array64> x = some_arguments(2, 1, 7, 19);
  const WindowRun run = run_additive(call, x, fill(5, {2, 7, 19}), {.window = 1});
  CHECK(run.weights.data == std::vector<double>(14, 1.0));
  check_same(run.context, positions_of(x[kValues], 0, 7), 1e-7);
  for (const Argument input : {kKeys, kQueries, kVector}) CHECK(all_zero(run.gradients[input]));
  CHECK_FALSE(all_zero(run.gradients[kValues]));
}

TEST_CASE("additive window: equal keys, or a score vector of zeros, give the mean of the values", "[window][worked]") {
  const WindowCall call = each_window_call();
  std::vector<Array64> x = some_arguments(2, 0, 6, 5);
  if (GENERATE(false, true))
    x[kKeys] = constant(0.3, x[kKeys].shape);
  else
    x[kVector] = zeros({5});
  const WindowRun run = run_additive(call, x, zeros({2, 6, 5}), {.window = 4});
  for (std::int64_t b = 0; b < 2; ++b)
    for (std::int64_t t = 0; t < 6; ++t) {
      const std::int64_t seen = std::min<std::int64_t>(4, t);
      for (std::int64_t c = 0; c < 4; ++c)
        CHECK(run.weights.at(b, t, c) ==
              Approx(c < 4 - seen ? 0 : 1.0 / static_cast<double>(seen)).epsilon(call.tolerance));
      for (std::int64_t i = 0; i < 5; ++i) {
        double sum = 0;
        for (std::int64_t j = t - seen; j < t; ++j) sum += x[kValues].at(b, j, i);
        const double mean = seen == 0 ? 0 : sum / static_cast<double>(seen);
        CHECK(run.context.at(b, t, i) == Approx(mean).epsilon(call.tolerance).margin(call.tolerance));
      }
    }
}

TEST_CASE("additive window: weights 1/4 and 3/4", "[window][worked]") {
  const WindowCall call = each_window_call();
  const std::vector<Array64> x{array({1, 3, 1}, {0, std::atanh(0.5), kNaN}), array({1, 1, 1}, {0}),
                               array({1}, {2 * std::log(3.0)}), array({1, 3, 1}, {4, 8, kNaN}), array({1, 1}, {9})};
  const WindowRun run = run_additive(call, x, constant(1, {1, 1, 1}), {.window = 2});
  CHECK(run.weights.at(0, 0, 0) == Approx(0.25).epsilon(call.tolerance));
  CHECK(run.weights.at(0, 0, 1) == Approx(0.75).epsilon(call.tolerance));
  CHECK(run.context.at(0, 0, 0) == Approx(7).epsilon(call.tolerance));
  CHECK(std::tanh(0.1 * run.context.at(0, 0, 0)) == Approx(0.6043677771).epsilon(1e-7));
  // dcontext / dscore of the newer one is (8 - 7) 3/4, and of the older one (4 - 7) 1/4.
  const double vector = 2 * std::log(3.0);
  CHECK(run.gradients[kKeys].at(0, 0, 0) == Approx(-0.75 * vector).epsilon(call.tolerance));
  CHECK(run.gradients[kKeys].at(0, 1, 0) == Approx(0.75 * 0.75 * vector).epsilon(call.tolerance));
  CHECK(run.gradients[kKeys].at(0, 2, 0) == 0);
  CHECK(run.gradients[kQueries].at(0, 0, 0) == Approx(-0.75 * 0.25 * vector).epsilon(2 * call.tolerance));
  CHECK(run.gradients[kVector].at(0) == Approx(0.75 * 0.5).epsilon(call.tolerance));
  CHECK(run.gradients[kValues].data == std::vector<double>{run.weights.at(0, 0, 0), run.weights.at(0, 0, 1), 0});
}

TEST_CASE("additive window: the order of the pairs does not matter, that of the values alone does",
          "[window][worked]") {
  const WindowCall call = each_window_call();
  const std::vector<Array64> x = some_arguments(1, 4, 1, 6);
  const auto reversed = [](const Array64& from) {
    Array64 to = from;
    for (std::int64_t j = 0; j < 4; ++j)
      for (std::int64_t i = 0; i < 6; ++i) to.at(0, j, i) = from.at(0, 3 - j, i);
    return to;
  };
  const auto context = [&](const Array64& keys, const Array64& values) {
    return run_additive(call, {keys, x[kQueries], x[kVector], values, x[kPreceding]}, zeros({1, 1, 6}), {.window = 4})
        .context;
  };
  const Array64 as_it_was = context(x[kKeys], x[kValues]);
  check_same(context(reversed(x[kKeys]), reversed(x[kValues])), as_it_was, 1e-6);
  CHECK_FALSE(
      compare_elements("values", std::array{context(x[kKeys], reversed(x[kValues]))}, std::array{as_it_was}, 1e-3)
          .empty());
}

TEST_CASE("additive window: a block is its pieces with the rows before them carried", "[window][worked]") {
  const WindowCall call = each_window_call();
  const std::int64_t window = GENERATE(1, 5, 15, 25);
  const std::vector<Array64> x = some_arguments(2, 0, 20, 7);
  const Array64 whole = run_additive(call, x, zeros({2, 20, 7}), {.window = window}).context;
  for (std::int64_t begin = 0; begin < 20; begin += 5) {
    const std::int64_t oldest = std::max<std::int64_t>(0, begin - window);
    const std::vector<Array64> piece{
        positions_of(x[kKeys], oldest, begin + 5), positions_of(x[kQueries], begin, begin + 5), x[kVector],
        positions_of(x[kValues], oldest, begin + 5), positions_of(x[kPreceding], begin, begin + 5)};
    const WindowRun run = run_additive(call, piece, zeros({2, 5, 7}), {.window = window});
    check_same(run.context, positions_of(whole, begin, begin + 5), 1e-6);
  }
}

TEST_CASE("additive window: two sequences in one block are two blocks", "[window][worked]") {
  const WindowCall call = each_window_call();
  const std::int64_t start = GENERATE(0, 1, 3, 7), window = 3, carried = 2, block = 8;
  std::vector<Array64> x = some_arguments(2, carried, block, 9);
  for (std::int64_t b = 0; b < 2; ++b)
    for (std::int64_t t = start; t < block; ++t) x[kPreceding].at(b, t) = static_cast<double>(t - start);
  const Array64 cotangent = fill(6, {2, block, 9});
  const WindowRun both = run_additive(call, x, cotangent, {.window = window});
  Array64 of_vector = zeros({9});
  const auto check_part = [&](std::int64_t oldest, std::int64_t begin, std::int64_t end) {
    const std::vector<Array64> part{
        positions_of(x[kKeys], oldest, carried + end), positions_of(x[kQueries], begin, end), x[kVector],
        positions_of(x[kValues], oldest, carried + end), positions_of(x[kPreceding], begin, end)};
    const WindowRun run = run_additive(call, part, positions_of(cotangent, begin, end), {.window = window});
    check_same(positions_of(both.context, begin, end), run.context, 1e-6);
    check_same(positions_of(both.gradients[kKeys], oldest, carried + end), run.gradients[kKeys], 1e-5);
    check_same(positions_of(both.gradients[kValues], oldest, carried + end), run.gradients[kValues], 1e-5);
    check_same(positions_of(both.gradients[kQueries], begin, end), run.gradients[kQueries], 1e-5);
    for (std::int64_t i = 0; i < 9; ++i) of_vector.at(i) += run.gradients[kVector].at(i);
  };
  if (start > 0) check_part(0, 0, start);
  check_part(carried + start, start, block);
  check_same(both.gradients[kVector], of_vector, 1e-5);
}

TEST_CASE("additive window: rows that nobody may see are not looked at", "[window][worked]") {
  const WindowCall call = each_window_call();
  const std::int64_t window = GENERATE(1, 3, 50);
  std::vector<Array64> x = some_arguments(2, 3, 5, 21);
  for (std::int64_t b = 0; b < 2; ++b)
    for (std::int64_t t = 0; t < 5; ++t) x[kPreceding].at(b, t) = static_cast<double>(t % 4);  // starts: 0 and 4
  for (const Argument input : {kKeys, kValues})
    for (std::int64_t b = 0; b < 2; ++b)
      for (const std::int64_t row : {0, 1, 2, 6, 7})  // carried ones, and two that are the last of their sequence
        for (std::int64_t i = 0; i < 21; ++i) x[input].at(b, row, i) = kNaN;
  const WindowRun run = run_additive(call, x, fill(7, {2, 5, 21}), {.window = window});
  CHECK(all_finite(run.context));
  CHECK(all_finite(run.weights));
  for (const Array64& gradient : run.gradients) CHECK(all_finite(gradient));
  for (std::int64_t b = 0; b < 2; ++b)
    for (const std::int64_t t : {0, 4}) {
      for (std::int64_t i = 0; i < 21; ++i) {
        CHECK(run.context.at(b, t, i) == 0);
        CHECK(run.gradients[kQueries].at(b, t, i) == 0);
      }
      for (std::int64_t c = 0; c < window; ++c) CHECK(run.weights.at(b, t, c) == 0);
    }
  for (const Argument input : {kKeys, kValues})
    for (const std::int64_t row : {0, 1, 2, 6, 7})
      for (std::int64_t i = 0; i < 21; ++i) CHECK(run.gradients[input].at(1, row, i) == 0);
  CHECK(run.context.at(1, 3, 2) != 0);
}

TEST_CASE("additive window: an empty window whose missing positions count has equal weights", "[window][worked]") {
  const WindowCall call = each_window_call();
  std::vector<Array64> x = some_arguments(1, 0, 3, 4);
  const WindowRun run = run_additive(call, x, fill(8, {1, 3, 4}), {.window = 5, .count_missing = true});
  for (std::int64_t c = 0; c < 5; ++c) CHECK(run.weights.at(0, 0, c) == Approx(0.2).epsilon(call.tolerance));
  for (std::int64_t i = 0; i < 4; ++i) {
    CHECK(run.context.at(0, 0, i) == 0);
    CHECK(run.gradients[kQueries].at(0, 0, i) == 0);
  }
  for (std::int64_t t = 0; t < 3; ++t) {
    double sum = 0;
    for (std::int64_t c = 0; c < 5; ++c) sum += run.weights.at(0, t, c);
    CHECK(sum == Approx(1).epsilon(1e-6));
  }
}

TEST_CASE("additive window: sums of terms of any size", "[window]") {
  const WindowCall call = each_window_call();
  std::vector<Array64> x = some_arguments(1, 2, 4, 18);
  // Alone they are far beyond where an exponential is a number; their sums are not.
  for (std::int64_t t = 0; t < 4; ++t)
    for (std::int64_t i = 0; i < 18; ++i) x[kQueries].at(0, t, i) = i % 3 == 0 ? -1024 : i % 3 == 1 ? 4096 : 0.25;
  for (std::int64_t j = 0; j < 6; ++j)
    for (std::int64_t i = 0; i < 18; ++i)
      x[kKeys].at(0, j, i) = (i % 3 == 0   ? 1024
                              : i % 3 == 1 ? (j % 2 == 0 ? -4096 : 4096)
                                           : 0) +
                             0.125 * static_cast<double>((3 * j + i) % 7);
  const bool mixed = GENERATE(false, true);  // moderate rows beside large ones
  if (mixed)
    for (std::int64_t i = 0; i < 18; ++i) x[kQueries].at(0, 2, i) = x[kKeys].at(0, 3, i) = 0.5;
  const Array64 cotangent = fill(9, {1, 4, 18});
  const WindowRun run = run_additive(call, x, cotangent, {.window = 3});
  const auto wanted = reference::additive_window(x[kKeys], x[kQueries], x[kVector], x[kValues], x[kPreceding], 3);
  check_same(run.weights, wanted.weights, 2 * call.tolerance);
  check_same(run.context, wanted.context, 2 * call.tolerance);
  // One gradient by central differences of the definition; the others are the op table's.
  const auto loss = [&](std::size_t input, std::size_t element, double change) {
    std::vector<Array64> moved = x;
    moved[input].data[element] += change;
    const Array64 context =
        reference::additive_window(moved[kKeys], moved[kQueries], moved[kVector], moved[kValues], moved[kPreceding], 3)
            .context;
    double sum = 0;
    for (std::size_t i = 0; i < context.data.size(); ++i) sum += context.data[i] * cotangent.data[i];
    return sum;
  };
  for (const Argument input : {kKeys, kQueries, kVector})
    for (std::size_t element = 0; element < x[input].data.size(); ++element) {
      const double step = 1.0 / 4096;
      const double slope = (loss(input, element, step) - loss(input, element, -step)) / (2 * step);
      CHECK(run.gradients[input].data[element] == Approx(slope).epsilon(1e-4).margin(2e-6));
    }
}

}  // namespace
}  // namespace engram::harness::window_attention_additive_worked_test
