/// Dropout on the weights of attention: op-table entries, whose reference draws every element by the documented
/// numbering, and the statistics of T15 of [all-attention 12].

#include <cmath>

#include "tests/harness/array_difference.hpp"
#include "tests/harness/catch.hpp"
#include "tests/ops/attention_kernels.hpp"

namespace engram::harness::attention_dropout_test {
namespace {

using Positions = AttentionInputSizes::Positions;

AttentionOptions dropped(AttentionOptions options, double rate) {
  options.dropout = DropoutRule(rate);
  return options;
}
AttentionOptions spanning(AttentionOptions options, int min_distance) {
  options.ramp = 4;
  options.min_distance = min_distance;
  return options;
}
AttentionOptions ring(AttentionOptions options, std::int64_t past_count) {
  options.past_count = past_count;
  return options;
}

const AttentionCases cases{
    {"attention, dropout",
     dropped(attention_options(13, {13, 13}), 0.3),
     {{.slots = 5},
      {.streams = 1, .block = 35, .depth = 1, .positions = Positions::none},
      {.streams = 1, .block = 2, .depth = 2, .slots = 1031}}},
    {"attention, dropout of slots only",
     dropped(attention_options(0, {0, 0}), 0.5),
     {{.slots = 3}, {.block = 1, .slots = 300}}},
    {"attention, dropout with ragged windows",
     dropped(attention_options(9, {7, 0, 3, 9}), 0.25),
     {{.slots = 2}, {.positions = Positions::per_head, .position_query = true, .past_valid = {4, 0}}}},
    {"attention, dropout with spans and a ring",
     ring(spanning(dropped(attention_options(12, {12, 1, 9}), 0.3), 0), 29),
     {{.slots = 2, .span = {3.5 / 12, 0.05, 0.88}},
      {.streams = 3, .block = 2, .slots = 4, .span = {0, 0.25, 1}, .span_is_constant = true}}},
};

/// Sums over draws of one element of out: B equal streams draw independently, and so do steps.
struct Statistics {
  static constexpr std::int64_t kStreams = 2000, kSteps = 50;
  AttentionOptions options = spanning(dropped(attention_options(6, {6}), 0.3), 1);
  std::vector<Array64> x;

  Statistics() {
    const AttentionInputSizes one{.streams = 1, .block = 1, .depth = 2, .slots = 5, .span = {0.41}};
    AttentionInputSizes many = one;
    many.streams = kStreams;
    const std::vector<Array64> first = attention_numbers("T15", options, one);
    x = attention_numbers("T15", options, many);
    for (std::size_t i = 0; i < x.size(); ++i)
      for (std::size_t k = 0; k < x[i].data.size(); ++k) x[i].data[k] = first[i].data[k % first[i].data.size()];
  }

  /// Mean and variance of every component over kStreams * kSteps draws.
  std::array<std::array<double, 2>, 2> draw() const {
    std::array<double, 2> sum{}, squares{};
    for (std::int64_t step = 0; step < kSteps; ++step) {
      const Array64 out = run_attention(x, options, {.step = static_cast<std::uint64_t>(step)}).out;
      for (std::size_t k = 0; k < out.data.size(); ++k) {
        sum[k % 2] += out.data[k];
        squares[k % 2] += out.data[k] * out.data[k];
      }
    }
    std::array<std::array<double, 2>, 2> result{};
    const double draws = kStreams * kSteps;
    for (std::size_t i = 0; i < 2; ++i) {
      result[0][i] = sum[i] / draws;
      result[1][i] = squares[i] / draws - result[0][i] * result[0][i];
    }
    return result;
  }
};

TEST_CASE("T15: the mean over 100000 draws is the output without dropout", "[attention][worked]") {
  Statistics statistics;
  const auto [mean, variance] = statistics.draw();
  AttentionOptions calm = statistics.options;
  calm.dropout = {};
  const Array64 wanted = run_attention(statistics.x, calm).out;
  for (std::size_t i = 0; i < 2; ++i) {
    const double standard_error = std::sqrt(variance[i] / (Statistics::kStreams * Statistics::kSteps));
    CAPTURE(i, mean[i], wanted.data[i], standard_error);
    CHECK(standard_error > 0);
    CHECK(std::abs(mean[i] - wanted.data[i]) < 4 * standard_error);
  }
}

TEST_CASE("T15: weights are not renormalised after dropout", "[attention][worked]") {
  Statistics statistics;
  // With all values 1 the output is the sum of what is left of the weights. Renormalised it would always be 1; with
  // independent draws its variance is p / (1 - p) times the sum of the squared weights, 1 / slots or more of it.
  for (const AttentionArgument place : {kValues, kPastValues})
    for (double& value : statistics.x[place].data) value = 1;
  for (double& value : statistics.x[kSlotValues].data) value = 1 / statistics.options.slot_value_scale;
  double squares = 0;
  const std::int64_t window = 6, slots = 5;
  AttentionOptions calm = statistics.options;
  calm.dropout = {};
  for (std::int64_t slot = 0; slot < window + slots; ++slot) {
    std::vector<Array64> one = statistics.x;
    for (const AttentionArgument place : {kPastValues, kSlotValues}) one[place] = reference::zeros(one[place].shape);
    if (slot < window)
      one[kPastValues].at(slot, 0) = 1;
    else
      one[kSlotValues].at(0, slot - window, 0) = 1 / calm.slot_value_scale;
    const double weight = run_attention(one, calm).out.at(0, 0, 0);
    squares += weight * weight;
  }
  CHECK(squares > 1.0 / (window + slots));
  const DropoutRule& rule = statistics.options.dropout;
  const auto [mean, variance] = statistics.draw();
  CHECK(mean[0] == Approx(1).epsilon(0.01));
  CHECK(variance[0] == Approx((rule.multiplier - 1) * squares).epsilon(0.03));
}

TEST_CASE("T15: the same draws whatever the block's tiles and the heads' windows", "[attention][worked]") {
  // A window of 150 makes tiles of 64 queries, one of 20 tiles of 32; the mask hides the difference.
  AttentionOptions wide = dropped(attention_options(150, {150}), 0.3);
  wide.ramp = 4;
  AttentionOptions narrow = wide;
  narrow.windows = HeadWindows({20});
  std::vector<Array64> x = attention_numbers("T15 tiles", wide, {.streams = 1, .block = 90, .slots = 3, .span = {0.1}});
  const Array64 from_wide = run_attention(x, wide).out;
  for (const AttentionArgument place : {kPastKeys, kPastValues}) {
    x[place].data.erase(x[place].data.begin(), x[place].data.end() - 20 * 3);
    x[place].shape[0] = 20;
  }
  const Array64 from_narrow = run_attention(x, narrow).out;
  CHECK(compare_elements("out", std::array{from_narrow}, std::array{from_wide}, 1e-14).empty());
  narrow.dropout = {};
  CHECK(run_attention(x, narrow).out.data != from_narrow.data);
}

}  // namespace
}  // namespace engram::harness::attention_dropout_test
