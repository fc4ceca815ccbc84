/// The attention kernels against the plain definition, values and analytic gradients, where central differences are
/// too slow or do not exist: many tiles, large products, spans that end exactly at a slot.

#include "tests/harness/array_difference.hpp"
#include "tests/harness/catch.hpp"
#include "tests/ops/attention_kernels.hpp"

namespace engram::harness::attention_gradients_test {
namespace {

using Positions = AttentionInputSizes::Positions;

struct Tolerances {
  double forward, gradient;
};
constexpr Tolerances kDouble{1e-12, 1e-11};
constexpr Tolerances kSingle{5e-6, 2e-5};

void check(const std::vector<std::string>& faults) {
  for (const std::string& fault : faults) FAIL_CHECK(fault);
  CHECK(faults.empty());
}

/// Everything that the kernels compute, against the definition.
void check_against_truth(const std::vector<Array64>& x, const AttentionOptions& options, const Array64& dout,
                         DType dtype, Tolerances tolerances) {
  const AttentionTruth wanted = attention_truth(x, options);
  const AttentionTruth got = run_attention(x, options, {.dtype = dtype});
  check(compare_elements("out and lse", std::array{got.out, got.lse}, std::array{wanted.out, wanted.lse},
                         tolerances.forward));
  check(compare_elements("gradient of input", run_attention_backward(x, options, got, dout, {.dtype = dtype}),
                         attention_truth_gradients(x, options, dout), tolerances.gradient));
}

Array64 cotangent(const Array64& x) {
  return input_values("cotangent", {normal(Shape(std::span<const std::int64_t>(x.shape)))}, DType::f32)[0];
}

TEST_CASE("attention: gradients equal the definition's over many tiles", "[attention]") {
  AttentionOptions options = attention_options(200, {200, 57, 0});
  options.ramp = 16;
  options.min_distance = GENERATE(0, 1);
  options.past_count = GENERATE(0, 1234);
  options.dropout = DropoutRule(GENERATE(0.0, 0.3));
  // Without slots the columns of missing positions are left out.
  const std::int64_t slots = GENERATE(7, -1);
  CAPTURE(options.min_distance, options.past_count, options.dropout.threshold, slots);
  // More streams than groups of partial sums, and a block of several tiles of each height.
  const AttentionInputSizes sizes{.streams = 5,
                                  .block = 131,
                                  .depth = 3,
                                  .slots = slots,
                                  .positions = options.min_distance == 0 ? Positions::per_head : Positions::shared,
                                  .position_query = options.min_distance == 0,
                                  .span = {0.61, 0.137, 0.9},
                                  .past_valid = {200, 3, 0, 17, 500}};
  const std::vector<Array64> x = attention_numbers("many tiles", options, sizes);
  check_against_truth(x, options, cotangent(x[kContentQuery]), DType::f64, kDouble);
}

TEST_CASE("attention: gradients of spans of queries and of position values over many tiles", "[attention]") {
  AttentionOptions options = attention_options(200, {200, 57, 0});
  options.ramp = 16;
  options.min_distance = GENERATE(0, 1);
  options.past_count = GENERATE(0, 1234);
  options.dropout = DropoutRule(GENERATE(0.0, 0.3));
  const std::int64_t slots = GENERATE(7, -1);
  CAPTURE(options.min_distance, options.past_count, options.dropout.threshold, slots);
  // Spans of every length side by side in a tile; some end at a slot.
  const AttentionInputSizes sizes{
      .streams = 5,
      .block = 131,
      .depth = 3,
      .slots = slots,
      .position_values = options.min_distance == 0 ? Positions::per_head : Positions::shared,
      .span = {0.61, 0.137, 0.9, 0, 1, 0.25, 0.0051, 0.333},
      .query_spans = true,
      .past_valid = {200, 3, 0, 17, 500}};
  const std::vector<Array64> x = attention_numbers("many tiles, many spans", options, sizes);
  const Array64 dout = cotangent(x[kContentQuery]);
  check_against_truth(x, options, dout, DType::f64, kDouble);
  check_against_truth(x, options, dout, DType::f32, {kSingle.forward, 5 * kSingle.gradient});
}

TEST_CASE("attention: a memory that is not full yet, without spans and slots", "[attention]") {
  AttentionOptions options = attention_options(160, {160, 160});
  options.min_distance = 0;
  options.dropout = DropoutRule(GENERATE(0.0, 0.2));
  options.past_count = GENERATE(0, 77);
  // 30 of the memory's rows and 70 before the block's end; one stream at its start, one that has all.
  const AttentionInputSizes sizes{.streams = 3,
                                  .block = 70,
                                  .depth = 5,
                                  .positions = Positions::per_head,
                                  .position_query = true,
                                  .past_valid = {30, 0, 160}};
  const std::vector<Array64> x = attention_numbers("growing memory", options, sizes);
  const Array64 dout = cotangent(x[kContentQuery]);
  check_against_truth(x, options, dout, DType::f64, kDouble);
  check_against_truth(x, options, dout, DType::f32, kSingle);
}

TEST_CASE("attention: products of the size of real models, in f32 and f64", "[attention]") {
  AttentionOptions options = attention_options(150, {150, 40});
  options.score_scale = 0.125;
  options.slot_score_scale = 0.125;
  options.ramp = 32;
  options.dropout = DropoutRule(0.2);
  const std::vector<Array64> x = attention_numbers(
      "real sizes", options, {.streams = 1, .block = 70, .depth = 64, .slots = 101, .span = {0.5, 0.07}});
  const Array64 dout = cotangent(x[kContentQuery]);
  check_against_truth(x, options, dout, DType::f64, kDouble);
  check_against_truth(x, options, dout, DType::f32, kSingle);
}

TEST_CASE("attention: gradients of spans that end exactly at a slot", "[attention]") {
  AttentionOptions options = attention_options(16, {16, 16, 16, 16, 16, 16});
  options.ramp = 4;
  options.mask_offset = GENERATE(0, 1);
  options.min_distance = GENERATE(1, 0);
  options.ramp_gradient = GENERATE(RampGradient::inclusive, RampGradient::right, RampGradient::open);
  options.dropout = DropoutRule(GENERATE(0.0, 0.4));
  CAPTURE(options.mask_offset, options.min_distance, static_cast<int>(options.ramp_gradient));
  const std::int64_t slots = GENERATE(-1, 3);
  const std::vector<double> valid = GENERATE(std::vector<double>{}, std::vector<double>{3, 0});
  const bool query_spans = GENERATE(false, true);
  const std::vector<Array64> x = attention_numbers("integer spans", options,
                                                   {.block = 7,
                                                    .slots = slots,
                                                    .span = {0, 0.25, 0.6875, 0.9375, 1, 0.5},
                                                    .query_spans = query_spans,
                                                    .past_valid = valid});
  const Array64 dout = cotangent(x[kContentQuery]);
  check_against_truth(x, options, dout, DType::f64, kDouble);
  check_against_truth(x, options, dout, DType::f32, kSingle);
}

/// The rows of a packed past that a shorter window keeps, and the position keys that go with them.
std::vector<Array64> shortened(std::vector<Array64> x, const HeadWindows& from, const HeadWindows& to) {
  const std::int64_t streams = x[kContentQuery].axis(0), depth = x[kPastKeys].axis(1);
  for (const int place : {kPastKeys, kPastValues}) {
    Array64& past = x[static_cast<std::size_t>(place)];
    Array64 kept = reference::zeros({streams * to.total, depth});
    for (std::size_t h = 0; h < to.window.size(); ++h)
      for (std::int64_t b = 0; b < streams; ++b)
        for (std::int64_t r = 0; r < to.window[h]; ++r)
          for (std::int64_t i = 0; i < depth; ++i)
            kept.at(streams * to.first[h] + b * to.window[h] + r, i) =
                past.at(streams * from.first[h] + (b + 1) * from.window[h] - to.window[h] + r, i);
    past = std::move(kept);
  }
  return x;
}

TEST_CASE("attention: windows cut to what the spans need change nothing", "[attention]") {
  AttentionOptions whole = attention_options(200, {200, 200, 200, 200});
  whole.ramp = 8;
  whole.dropout = DropoutRule(GENERATE(0.0, 0.3));
  AttentionOptions cut = whole;
  // z = 20.5, 0, 37 and 199; one slot more than are visible, for the gradient at the end of the ramp.
  cut.windows = HeadWindows({21 + 8 + 1, 0 + 8 + 1, 37 + 8 + 1, 200});
  const std::vector<Array64> x = attention_numbers(
      "cut windows", whole, {.block = 70, .slots = 5, .span = {20.5 / 200, 0, 37.0 / 200, 199.0 / 200}});
  const std::vector<Array64> short_x = shortened(x, whole.windows, cut.windows);
  const AttentionTruth wanted = run_attention(x, whole), got = run_attention(short_x, cut);
  check(compare_elements("out and lse", std::array{got.out, got.lse}, std::array{wanted.out, wanted.lse}, 1e-13));
  const Array64 dout = cotangent(x[kContentQuery]);
  std::vector<Array64> wanted_gradients =
      shortened(run_attention_backward(x, whole, wanted, dout), whole.windows, cut.windows);
  check(
      compare_elements("gradient of input", run_attention_backward(short_x, cut, got, dout), wanted_gradients, 1e-12));
}

}  // namespace
}  // namespace engram::harness::attention_gradients_test
