/// Attention with a span of every query ([all-attention 1.6], `span=dynamic`): op-table entries, and what a span per
/// query has in common with a span per head.

#include <cmath>

#include "tests/harness/array_difference.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/each_device.hpp"
#include "tests/ops/attention_kernels.hpp"

namespace engram::harness::attention_query_spans_test {
namespace {

using Positions = AttentionInputSizes::Positions;

/// S = 12 and a ramp of 4 positions.
AttentionOptions span_options(std::vector<std::int32_t> windows, int mask_offset = 0,
                              RampGradient ramp_gradient = RampGradient::inclusive) {
  AttentionOptions options = attention_options(12, std::move(windows));
  options.ramp = 4;
  options.mask_offset = mask_offset;
  options.ramp_gradient = ramp_gradient;
  return options;
}
AttentionOptions own_position_too(AttentionOptions options) {
  options.min_distance = 0;
  return options;
}

// z = 12 zeta at least 1e-3 from an integer, where slots would cross an end of the ramp. More of them than heads, so
// that heads and queries meet all of them.
const std::vector<double> kBetween{3.5 / 12, 0.05, 0.88, 0.41, 0.97, 0.007, 0.63};
// Slots lie exactly on both ends of the ramp, so the derivative of the span jumps.
const std::vector<double> kIntegers{0, 0.25, 1, 0.75, 1.0 / 3, 0.5, 0};

const AttentionCases cases{
    {"attention, spans of queries",
     span_options({12, 12, 12}),
     {{.span = kBetween, .query_spans = true},
      {.streams = 1, .block = 1, .slots = 2, .span = kBetween, .query_spans = true},
      {.streams = 1, .block = 21, .depth = 2, .positions = Positions::per_head, .span = kBetween, .query_spans = true},
      {.slots = 1, .positions = Positions::none, .span = kIntegers, .query_spans = true, .span_is_constant = true},
      {.slots = 5, .position_query = true, .span = kIntegers, .query_spans = true, .span_is_constant = true},
      // A depth that the fused form of cards would serve.
      {.streams = 1, .block = 9, .depth = 16, .slots = 3, .span = kBetween, .query_spans = true}}},
    {"attention, spans of queries with mask offset",
     span_options({12, 12, 12}, 1, RampGradient::open),
     {{.span = kBetween, .query_spans = true},
      {.slots = 3, .positions = Positions::none, .span = kBetween, .query_spans = true},
      {.span = kIntegers, .query_spans = true, .span_is_constant = true}}},
    {"attention, spans of queries with the own position",
     own_position_too(span_options({12, 12, 12}, 0, RampGradient::right)),
     {{.positions = Positions::per_head, .position_query = true, .span = kBetween, .query_spans = true},
      {.slots = 2, .span = kIntegers, .query_spans = true, .span_is_constant = true}}},
    {"attention, spans of queries and positions of values",
     span_options({12, 7}),
     {{.slots = 2, .position_values = Positions::shared, .span = kBetween, .query_spans = true},
      {.block = 35, .depth = 1, .position_values = Positions::per_head, .span = kBetween, .query_spans = true}}},
    {"attention, spans of queries with a ramp longer than the window",
     [] {
       AttentionOptions options = attention_options(3, {3, 3});
       options.ramp = 32;
       return options;
     }(),
     {{.slots = 3, .span = {0.1, 0.7, 0.3}, .query_spans = true}}},
    // Nothing is masked, and no span has a gradient.
    {"attention, spans of queries without a ramp",
     attention_options(4, {4, 2}),
     {{.slots = 1, .span = {0.1, 0.7, 0.3}, .query_spans = true}}},
    {"attention, spans of queries, ragged windows and missing past",
     span_options({12, 0, 9}),
     {{.span = kBetween, .query_spans = true, .past_valid = {2, 0}},
      {.block = 10, .slots = 2, .span = kBetween, .query_spans = true, .past_valid = {0, 7}},
      {.slots = 2, .span = kIntegers, .query_spans = true, .span_is_constant = true, .past_valid = {0, 4}}}},
    {"attention, spans of queries, dropout and a ring",
     [] {
       AttentionOptions options = own_position_too(span_options({12, 5, 12}));
       options.past_count = 1000003;
       options.dropout = DropoutRule(0.3);
       return options;
     }(),
     {{.span = kBetween, .query_spans = true},
      {.streams = 3, .block = 2, .slots = 4, .span = kIntegers, .query_spans = true, .span_is_constant = true}}},
};

TEST_CASE("attention: equal spans of all queries are the span of the head", "[attention]") {
  AttentionOptions options = attention_options(40, {40, 11, 0});
  options.ramp = 8;
  options.min_distance = GENERATE(0, 1);
  options.mask_offset = GENERATE(0, 1);
  options.ramp_gradient = GENERATE(RampGradient::inclusive, RampGradient::right, RampGradient::open);
  options.dropout = DropoutRule(0.3);
  CAPTURE(options.min_distance, options.mask_offset, static_cast<int>(options.ramp_gradient));
  const AttentionCall call{.keep = GENERATE(false, true), .backend = &each_device()};
  // Of 20, 0.1 and 12 positions: the first and the last end at a slot.
  std::vector<Array64> x = attention_numbers("equal spans", options,
                                             {.streams = 3,
                                              .block = 35,
                                              .slots = 3,
                                              .position_values = Positions::shared,
                                              .span = {0.5, 0.0025, 0.3},
                                              .past_valid = {40, 3, 0}});
  const Array64 dout = input_values("cotangent", {normal({3, 35, 9})}, DType::f32)[0];
  const AttentionTruth of_heads = run_attention(x, options, call);
  std::vector<Array64> wanted = run_attention_backward(x, options, of_heads, dout, call);
  const std::vector<double> spans = x[kSpan].data;
  x[kSpan] = reference::zeros({3, 35, 3});
  for (std::size_t k = 0; k < x[kSpan].data.size(); ++k) x[kSpan].data[k] = spans[k % 3];
  const AttentionTruth of_queries = run_attention(x, options, call);
  std::vector<Array64> got = run_attention_backward(x, options, of_queries, dout, call);
  CHECK(compare_bits("forward", std::array{of_queries.out, of_queries.lse, of_queries.kept},
                     std::array{of_heads.out, of_heads.lse, of_heads.kept})
            .empty());
  REQUIRE(got[kSpan].shape == x[kSpan].shape);
  for (std::int64_t h = 0; h < 3; ++h) {
    double sum = 0, size = 0;
    for (std::int64_t b = 0; b < 3; ++b)
      for (std::int64_t m = 0; m < 35; ++m) {
        sum += got[kSpan].at(b, m, h);
        size += std::abs(got[kSpan].at(b, m, h));
      }
    CAPTURE(h, sum, wanted[kSpan].at(h));
    CHECK(std::abs(sum - wanted[kSpan].at(h)) <= 1e-13 * size);
    if (h < 2) CHECK(size > 0.1);
  }
  got[kSpan] = wanted[kSpan] = {};
  CHECK(compare_bits("gradient", got, wanted).empty());
}

TEST_CASE("attention: a query's span changes that query alone", "[attention]") {
  AttentionOptions options = attention_options(40, {40, 40});
  options.ramp = 8;
  const AttentionCall call{.keep = GENERATE(false, true), .backend = &each_device()};
  std::vector<Array64> x =
      attention_numbers("one span", options, {.block = 35, .slots = 3, .span = {0.5, 0.1, 0.3}, .query_spans = true});
  const Array64 dout = input_values("cotangent", {normal({2, 35, 6})}, DType::f32)[0];
  const AttentionTruth before = run_attention(x, options, call);
  const std::vector<Array64> gradients = run_attention_backward(x, options, before, dout, call);
  x[kSpan].at(1, 17, 0) = 0.77;
  const AttentionTruth after = run_attention(x, options, call);
  const std::vector<Array64> new_gradients = run_attention_backward(x, options, after, dout, call);
  for (std::int64_t b = 0; b < 2; ++b)
    for (std::int64_t m = 0; m < 35; ++m)
      for (std::int64_t h = 0; h < 2; ++h) {
        const bool same = b != 1 || m != 17 || h != 0;
        CAPTURE(b, m, h);
        CHECK((after.lse.at(b, h, m) == before.lse.at(b, h, m)) == same);
        CHECK((new_gradients[kSpan].at(b, m, h) == gradients[kSpan].at(b, m, h)) == same);
        for (std::int64_t i = 0; i < 3; ++i)
          CHECK((after.out.at(b, m, h * 3 + i) == before.out.at(b, m, h * 3 + i)) == same);
      }
}

TEST_CASE("attention: spans of queries that see nothing have no gradient", "[attention]") {
  AttentionOptions options = attention_options(4, {4, 0});
  options.ramp = 2;
  options.ramp_gradient = GENERATE(RampGradient::inclusive, RampGradient::right, RampGradient::open);
  const AttentionCall call{.dtype = GENERATE(DType::f32, DType::f64),
                           .keep = GENERATE(false, true),
                           .backend = &each_device(),
                           .write = GENERATE(Write::set, Write::add)};
  const std::vector<Array64> x = attention_numbers(
      "no gradient", options, {.block = 3, .span = {0.25, 0, 0.6}, .query_spans = true, .past_valid = {0, 2}});
  const AttentionTruth result = run_attention(x, options, call);
  const std::vector<Array64> gradients =
      run_attention_backward(x, options, result, reference::constant(1e3, x[kContentQuery].shape), call);
  const double start = call.write == Write::add ? 1 : 0;
  CHECK(result.lse.at(0, 0, 0) == -std::numeric_limits<double>::infinity());
  CHECK(gradients[kSpan].at(0, 0, 0) == start);
  for (std::int64_t b = 0; b < 2; ++b)
    for (std::int64_t m = 0; m < 3; ++m) CHECK(gradients[kSpan].at(b, m, 1) == start);
  for (const Array64& gradient : gradients)
    for (const double value : gradient.data) CHECK(std::isfinite(value));
}

}  // namespace
}  // namespace engram::harness::attention_query_spans_test
