/// The attention core's analytic derivatives against central differences, with a random cotangent: a sum of outputs
/// would hide errors, because weights that sum to one make many derivatives of it vanish.

#include <array>
#include <cmath>
#include <string>

#include "tests/harness/catch.hpp"
#include "tests/reference/all_attention_layer.hpp"
#include "tests/reference/central_differences.hpp"
#include "tests/reference/span_attention.hpp"

namespace engram::reference::span_attention_gradient_test {
namespace {

struct Case {
  std::int64_t slots;
  Pad pad;
  bool own_positions;  // a position table for every head and a position query of its own
  bool with_span;
  std::int64_t min_distance;
  bool position_values = false, query_spans = false;
};

constexpr std::int64_t kStreams = 2, kQueries = 3, kHeads = 2, kDepth = 3, kPast = 4, kWindow = 6;
constexpr std::int64_t kWidth = kHeads * kDepth;

SpanAttentionInputs random_inputs(const Case& c, RandomArrays& random) {
  SpanAttentionInputs in;
  in.content_query = random.array({kStreams, kQueries, kWidth}, 1.5);
  if (c.own_positions) in.position_query = random.array({kStreams, kQueries, kWidth}, 1.5);
  in.past_keys = random.array({kStreams, kPast, kWidth});
  in.past_values = random.array({kStreams, kPast, kWidth});
  in.keys = random.array({kStreams, kQueries, kWidth});
  in.values = random.array({kStreams, kQueries, kWidth});
  in.position_keys = random.array({kWindow + 1, c.own_positions ? kWidth : kDepth});
  if (c.slots > 0) {
    in.slot_keys = random.array({kHeads, c.slots, kDepth});
    in.slot_values = random.array({kHeads, c.slots, kDepth});
  }
  // z = 6 zeta = 1.26 and 3.42: far from integers, where a slot would cross an end of the ramp.
  if (c.with_span) in.span = array({kHeads}, {0.21, 0.57});
  if (c.position_values) in.position_values = random.array({kWindow + 1, c.own_positions ? kDepth : kWidth});
  if (c.query_spans) {
    in.span = zeros({kStreams, kQueries, kHeads});
    for (std::size_t k = 0; k < in.span.data.size(); ++k)
      in.span.data[k] = std::array{0.21, 0.57, 0.05, 0.9}[k * 3 % 4];
  }
  return in;
}

SpanAttentionOptions options_for(const Case& c) {
  SpanAttentionOptions options = all_attention_options(kWidth, kHeads, c.slots, kWindow, 2);
  options.pad = c.pad;
  options.min_distance = c.min_distance;
  options.valid_past = {4, 1};
  options.slot_score_scale = 0.8;
  options.dropout = [](std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t slot) {
    return (7 * b + 5 * h + 3 * t + 2 * slot) % 4 == 0 ? 0.0 : 4 / 3.0;
  };
  return options;
}

void check_case(const Case& c) {
  RandomArrays random(100 + static_cast<std::uint64_t>(c.slots));
  SpanAttentionInputs in = random_inputs(c, random);
  const SpanAttentionOptions options = options_for(c);
  const Array64 cotangent = random.array({kStreams, kQueries, kWidth});
  const auto value = [&] {
    const Array64 out = span_attention(in, options).out;
    double total = 0;
    for (std::size_t k = 0; k < out.data.size(); ++k) total += out.data[k] * cotangent.data[k];
    return total;
  };
  SpanAttentionInputs analytic = span_attention_gradients(in, options, cotangent);
  const auto check = [&value](const std::string& name, Array64& input, const Array64& gradient) {
    if (!input.given()) {
      CHECK(!gradient.given());
      return;
    }
    const Array64 numeric = central_differences(input, value, 1e-5);
    INFO(name << ": norm " << norm(numeric));
    CHECK(norm(numeric) > 1e-3);
    CHECK(distance_between(gradient, numeric) < 1e-8 * norm(numeric));
  };
  check("content_query", in.content_query, analytic.content_query);
  check("position_query", in.position_query, analytic.position_query);
  check("past_keys", in.past_keys, analytic.past_keys);
  check("past_values", in.past_values, analytic.past_values);
  check("keys", in.keys, analytic.keys);
  check("values", in.values, analytic.values);
  check("position_keys", in.position_keys, analytic.position_keys);
  check("position_values", in.position_values, analytic.position_values);
  check("slot_keys", in.slot_keys, analytic.slot_keys);
  check("slot_values", in.slot_values, analytic.slot_values);
  check("span", in.span, analytic.span);
}

TEST_CASE("attention core: analytic gradients equal central differences", "[reference]") {
  const std::int64_t slots = GENERATE(0, 5);
  const Pad pad = GENERATE(Pad::attend_zero, Pad::mask);
  const bool own_positions = GENERATE(false, true);
  const bool with_span = GENERATE(false, true);
  const std::int64_t min_distance = GENERATE(1, 0);
  CAPTURE(slots, pad == Pad::mask, own_positions, with_span, min_distance);
  check_case({slots, pad, own_positions, with_span, min_distance});
}

TEST_CASE("attention core: gradients of value positions and of a span per query", "[reference]") {
  const bool own_positions = GENERATE(false, true);
  const bool query_spans = GENERATE(false, true);
  const std::int64_t min_distance = GENERATE(1, 0);
  CAPTURE(own_positions, query_spans, min_distance);
  check_case({5, Pad::mask, own_positions, query_spans, min_distance, true, query_spans});
}

TEST_CASE("attention core: a position value is added to every value at its distance", "[reference]") {
  // One query without scores: every weight is 1 / 6, so the output is the mean of values and position values.
  SpanAttentionInputs in;
  in.content_query = in.keys = in.values = zeros({1, 1, 1});
  in.past_keys = zeros({1, 6, 1});
  in.past_values = array({1, 6, 1}, {6, 5, 4, 3, 2, 1});
  in.position_values = array({6, 1}, {10, 20, 30, 40, 50, 60});
  SpanAttentionOptions options;
  options.max_distance = 6;
  CHECK(span_attention(in, options).out.at(0, 0, 0) == Approx(3.5 + 35));
  // A span of each query: only its own weights change. S = 6, R = 2, zeta = 0: masks 1 and 1/2 of distances 1 and 2.
  in.content_query = in.keys = in.values = zeros({1, 2, 1});
  in.span = array({1, 2, 1}, {0, 1});
  options.ramp = 2;
  const SpanAttentionResult result = span_attention(in, options);
  CHECK(result.out.at(0, 0, 0) == Approx((1 + 10 + (2 + 20) / 2.0) / 1.5));
  CHECK(result.out.at(0, 1, 0) == Approx((0 + 1 + 2 + 3 + 4 + 5 + 210) / 6.0));
}

TEST_CASE("attention core: the mode of the ramp's ends matters only at boundary slots", "[reference]") {
  const Case c{5, Pad::attend_zero, false, true, 1};
  RandomArrays random(3);
  SpanAttentionInputs in = random_inputs(c, random);
  SpanAttentionOptions options = options_for(c);
  const Array64 cotangent = random.array({kStreams, kQueries, kWidth});
  const auto span_gradient = [&](RampGradient rule) {
    options.ramp_gradient = rule;
    return span_attention_gradients(in, options, cotangent).span;
  };
  const Array64 inclusive = span_gradient(RampGradient::inclusive);
  CHECK(distance_between(inclusive, span_gradient(RampGradient::open)) == 0);
  CHECK(distance_between(inclusive, span_gradient(RampGradient::right)) == 0);

  in.span = array({kHeads}, {0, 0.5});  // z = 0 and 3: the right mode is the one-sided derivative
  const auto value = [&] {
    const Array64 out = span_attention(in, options).out;
    double total = 0;
    for (std::size_t k = 0; k < out.data.size(); ++k) total += out.data[k] * cotangent.data[k];
    return total;
  };
  const Array64 right = span_gradient(RampGradient::right);
  for (std::int64_t h = 0; h < kHeads; ++h) {
    const double here = value(), start = in.span.at(h), step = 1e-6;
    in.span.at(h) = start + step;
    const double once = value();
    in.span.at(h) = start + 2 * step;
    const double twice = value();
    in.span.at(h) = start;
    CHECK(right.at(h) == Approx((-3 * here + 4 * once - twice) / (2 * step)).epsilon(1e-6));
  }
  CHECK(distance_between(right, span_gradient(RampGradient::inclusive)) > 1e-3);
  CHECK(distance_between(right, span_gradient(RampGradient::open)) > 1e-3);
}

TEST_CASE("attention core: a query that sees nothing gives zero and no gradient", "[reference]") {
  const Case c{0, Pad::mask, false, true, 1};
  RandomArrays random(5);
  SpanAttentionInputs in = random_inputs(c, random);
  SpanAttentionOptions options = options_for(c);
  options.valid_past = {4, 0};
  const SpanAttentionResult result = span_attention(in, options);
  const SpanAttentionInputs gradients =
      span_attention_gradients(in, options, constant(1, {kStreams, kQueries, kWidth}));
  for (std::int64_t column = 0; column < kWidth; ++column) {
    CHECK(result.out.at(1, 0, column) == 0);
    CHECK(gradients.content_query.at(1, 0, column) == 0);
    CHECK(result.out.at(0, 0, column) != 0);
  }
  CHECK(std::isinf(result.lse.at(1, 0, 0)));
  for (const Array64* gradient : {&gradients.content_query, &gradients.keys, &gradients.past_keys, &gradients.span})
    for (const double g : gradient->data) CHECK(std::isfinite(g));
}

TEST_CASE("attention core: positions older than those given act as zero vectors", "[reference]") {
  const Case c{5, Pad::attend_zero, false, true, 1};
  RandomArrays random(6);
  SpanAttentionInputs in = random_inputs(c, random);
  const SpanAttentionOptions options = options_for(c);
  SpanAttentionInputs padded = in;
  padded.past_keys = zeros({kStreams, kPast + 3, kWidth});
  padded.past_values = padded.past_keys;
  for (std::int64_t b = 0; b < kStreams; ++b)
    for (std::int64_t row = 0; row < kPast; ++row)
      for (std::int64_t column = 0; column < kWidth; ++column) {
        padded.past_keys.at(b, row + 3, column) = in.past_keys.at(b, row, column);
        padded.past_values.at(b, row + 3, column) = in.past_values.at(b, row, column);
      }
  const SpanAttentionResult short_past = span_attention(in, options), long_past = span_attention(padded, options);
  CHECK(distance_between(short_past.out, long_past.out) == 0);
  CHECK(distance_between(short_past.weights, long_past.weights) == 0);
}

}  // namespace
}  // namespace engram::reference::span_attention_gradient_test
