/// Intervals of paired differences: by hand, by sums of squares, and on made-up data whose true difference is known.

#include "apps/studies/comparisons/paired_difference.hpp"

#include <cmath>
#include <random>

#include "apps/studies/comparisons/student_t.hpp"
#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::paired_difference_test {
namespace {

/// How much seeds, blocks, blocks of one variant alone, and the rest vary.
struct MadeUp {
  double seeds, blocks, own_blocks, rest;
};

/// The parts of the variance of one variant by sums of squares of a two-way table, whose rest is what the sums of seeds
/// and of blocks leave of that of everything.
struct SumsOfSquares {
  double seeds = 0, rest = 0;  ///< mean squares

  explicit SumsOfSquares(const BlockLossesBySeed& x) {
    const auto rows = static_cast<double>(x.size()), columns = static_cast<double>(x[0].size());
    double all = 0, squares = 0, by_rows = 0, by_columns = 0;
    for (std::size_t i = 0; i < x[0].size(); ++i) {
      double column = 0;
      for (const auto& row : x) column += row[i];
      by_columns += column * column / rows;
    }
    for (const auto& row : x) {
      double sum = 0;
      for (const double number : row) {
        sum += number;
        squares += number * number;
      }
      all += sum;
      by_rows += sum * sum / columns;
    }
    const double correction = all * all / rows / columns;
    seeds = (by_rows - correction) / (rows - 1);
    rest = (squares - by_rows - by_columns + correction) / (rows - 1) / (columns - 1);
  }
};

class Maker {
 public:
  explicit Maker(unsigned seed) : engine_(seed) {}
  double normal(double deviation) { return std::normal_distribution<double>(0, 1)(engine_) * deviation; }

  /// Two variants on the same blocks, with true means 2 and 2 + `difference`.
  std::pair<BlockLossesBySeed, BlockLossesBySeed> pair(const MadeUp& of, double difference, std::size_t seeds,
                                                       std::size_t blocks) {
    std::vector<double> shared(blocks);
    for (double& block : shared) block = normal(of.blocks);
    const auto variant = [&](double mean) {
      std::vector<double> own(blocks);
      for (double& block : own) block = normal(of.own_blocks);
      BlockLossesBySeed losses;
      for (std::size_t s = 0; s < seeds; ++s) {
        const double seed = normal(of.seeds);
        losses.emplace_back();
        for (std::size_t i = 0; i < blocks; ++i)
          losses.back().push_back(mean + seed + shared[i] + own[i] + normal(of.rest));
      }
      return losses;
    };
    BlockLossesBySeed right = variant(2 + difference);
    return {variant(2), std::move(right)};
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace

TEST_CASE("student_t: bounds of printed tables") {
  CHECK(student_bound(0.95, 1) == Approx(12.7062).epsilon(1e-4));
  CHECK(student_bound(0.95, 2) == Approx(4.30265).epsilon(1e-5));
  CHECK(student_bound(0.95, 4) == Approx(2.77645).epsilon(1e-5));
  CHECK(student_bound(0.99, 10) == Approx(3.16927).epsilon(1e-5));
  CHECK(student_bound(0.90, 30) == Approx(1.69726).epsilon(1e-5));
  CHECK(student_bound(0.95, 1e6) == Approx(1.95997).epsilon(1e-5));
  // Of degrees that no table has: between its neighbours, and the inverse of the other function.
  const double between = student_bound(0.95, 2.5);
  CHECK((between < 4.30265 && between > 3.18245));
  CHECK(student_coverage(between, 2.5) == Approx(0.95).epsilon(1e-9));
  CHECK(student_coverage(0, 3) == 0);
}

TEST_CASE("paired_difference: numbers by hand") {
  // Differences of blocks, of means over seeds: -1, -1, -4. Their variance is 3, over three blocks 1. Seeds of the left
  // have means 2 and 4: variance 2, over two seeds 1; of the right 5 and 5. Rests of the left are 0, of the right +-1,
  // -+1 and 0: squares of 4, two degrees, over two seeds and three blocks 1/3.
  const BlockLossesBySeed left{{1, 2, 3}, {3, 4, 5}};
  const BlockLossesBySeed right{{4, 3, 8}, {2, 5, 8}};
  const PairedDifference found = paired_difference(left, right, 0.95);
  CHECK(found.difference == Approx(-2));
  CHECK(found.blocks == 3);
  CHECK(found.block_error == Approx(1));
  CHECK(found.seed_error == Approx(1));
  CHECK(found.standard_error == Approx(std::sqrt(1 + 1 - 1.0 / 3)));
  // (5/3)^2 / (1/2 + 1/1 + (1/9)/2)
  CHECK(found.freedom == Approx(25.0 / 9 / (1.5 + 1.0 / 18)));
  CHECK(found.half_width() == Approx(student_bound(0.95, found.freedom) * found.standard_error));
  CHECK(found.low == Approx(-2 - found.half_width()));
  // -1, -1, -4 around -2: (1 * 1 + 1 * -2) / (1 + 1 + 4)
  CHECK(found.neighbours == Approx(-1.0 / 6));
}

TEST_CASE("paired_difference: by sums of squares, and turned round") {
  Maker maker(7);
  const auto [left, right] = maker.pair({.seeds = 0.02, .blocks = 0.3, .own_blocks = 0.05, .rest = 0.1}, 0.01, 4, 25);
  const PairedDifference found = paired_difference(left, right, 0.9);
  const SumsOfSquares one(left), other(right);
  const double seeds = (one.seeds + other.seeds) / 4 / 25, rest = (one.rest + other.rest) / 4 / 25;
  CHECK(found.seed_error * found.seed_error == Approx(seeds).epsilon(1e-9));
  const double blocks = found.block_error * found.block_error;
  CHECK(found.standard_error * found.standard_error ==
        Approx(std::max({blocks + seeds - rest, blocks, seeds})).epsilon(1e-9));
  const PairedDifference turned = paired_difference(right, left, 0.9);
  CHECK(turned.difference == -found.difference);
  CHECK(turned.low == Approx(-found.high));
  CHECK(turned.freedom == Approx(found.freedom));
}

TEST_CASE("paired_difference: intervals hold the truth as often as they say", "[night]") {
  // What blocks share is large in all of them, as in a text, and must not matter. Blocks alone, seeds alone, and both.
  const MadeUp all[] = {{.seeds = 0.001, .blocks = 0.5, .own_blocks = 0.05, .rest = 0.05},
                        {.seeds = 0.05, .blocks = 0.5, .own_blocks = 0.001, .rest = 0.01},
                        {.seeds = 0.02, .blocks = 0.5, .own_blocks = 0.1, .rest = 0.1}};
  constexpr int kTrials = 600;
  constexpr double kTruth = -0.03;
  for (const MadeUp& of : all) {
    Maker maker(11);
    int held = 0;
    double width = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      const auto [left, right] = maker.pair(of, -kTruth, 3, 30);
      const PairedDifference found = paired_difference(left, right, 0.95);
      held += found.low <= kTruth && kTruth <= found.high ? 1 : 0;
      width += found.half_width() / kTrials;
    }
    INFO("seeds " << of.seeds << ", blocks " << of.own_blocks);
    // 570 are expected; chance alone has a standard deviation of 5.3.
    CHECK(held >= 550);
    CHECK(held <= 594);
    // And they are no wider than they must be: unpaired ones would be 0.2 to each side.
    CHECK(width < 0.14);
  }
}

TEST_CASE("paired_difference: blocks that hang together, models that are alike, and what is refused") {
  Maker maker(3);
  BlockLossesBySeed left(2, std::vector<double>(100)), right = left;
  double level = 0;
  for (std::size_t i = 0; i < 100; ++i) {
    level = 0.9 * level + maker.normal(0.1);
    for (std::size_t s = 0; s < 2; ++s) {
      left[s][i] = level + maker.normal(0.01);
      right[s][i] = maker.normal(0.01);
    }
  }
  CHECK(paired_difference(left, right, 0.95).blocks_hang_together());
  CHECK_FALSE(paired_difference(right, right, 0.95).blocks_hang_together());

  const BlockLossesBySeed same(2, std::vector<double>(5, 1.5));
  const PairedDifference none = paired_difference(same, same, 0.95);
  CHECK(none.difference == 0);
  CHECK(none.low == 0);
  CHECK(none.high == 0);

  CHECK_THAT(message_of<Error>([&] {
               paired_difference({{1, 2}}, {{1, 2}, {1, 2}}, 0.95);
             }),
             ContainsSubstring("two seeds or more, got 1"));
  CHECK_THAT(message_of<Error>([&] {
               paired_difference({{1, 2}, {1, 2}}, {{1, 2}, {1}}, 0.95);
             }),
             ContainsSubstring("the same blocks"));
}

}  // namespace engram::harness::paired_difference_test
