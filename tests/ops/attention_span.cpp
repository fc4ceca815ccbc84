/// Op-table entries of attention: adaptive spans, ragged windows, padding and rings of the past.

#include "tests/ops/attention_truth.hpp"

namespace engram::harness::attention_span_test {
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

AttentionOptions ring(AttentionOptions options, std::int64_t past_count) {
  options.past_count = past_count;
  return options;
}

AttentionOptions own_position_too(AttentionOptions options) {
  options.min_distance = 0;
  return options;
}

// z = 12 zeta: 3.5, 0.6 and 10.56, at least 1e-3 from an integer, where slots would cross an end of the ramp.
const std::vector<double> kBetween{3.5 / 12, 0.05, 0.88};
// 0, 3 and 12 positions: slots lie exactly on both ends of the ramp, so the derivative of the span jumps.
const std::vector<double> kIntegers{0, 0.25, 1};

const AttentionCases cases{
    {"attention, span",
     span_options({12, 12, 12}),
     {{.span = kBetween},
      {.streams = 1, .block = 1, .slots = 2, .span = kBetween},
      {.streams = 1, .block = 21, .depth = 2, .positions = Positions::per_head, .span = kBetween},
      {.slots = 1, .positions = Positions::none, .span = kIntegers, .span_is_constant = true},
      {.slots = 5, .position_query = true, .span = kIntegers, .span_is_constant = true}}},
    // Every slot is visible in full: a small change of the span changes nothing.
    {"attention, span of everything", span_options({12, 12}), {{.slots = 3, .span = {1, 1}}}},
    {"attention, span with mask offset",
     span_options({12, 12, 12}, 1, RampGradient::open),
     {{.span = kBetween},
      {.span = kIntegers, .span_is_constant = true},
      {.slots = 3, .positions = Positions::none, .span = kBetween}}},
    {"attention, span with the own position",
     own_position_too(span_options({12, 12, 12}, 0, RampGradient::right)),
     {{.positions = Positions::per_head, .position_query = true, .span = kBetween},
      {.slots = 2, .span = kIntegers, .span_is_constant = true}}},
    // A ramp longer than the window: no slot is ever fully masked.
    {"attention, ramp longer than the window",
     [] {
       AttentionOptions options = attention_options(3, {3, 3});
       options.ramp = 32;
       return options;
     }(),
     {{.span = {0.1, 0.7}}, {.slots = 3, .span = {0.3, 0.31}}}},
    // Each head sees as far as its own window, which is also the layout of the past.
    {"attention, ragged windows",
     attention_options(9, {7, 0, 3, 9}),
     {{},
      {.streams = 1, .block = 1, .slots = 2, .positions = Positions::per_head},
      {.block = 11, .depth = 1, .slots = 1, .positions = Positions::none}}},
    {"attention, ragged windows with the own position",
     own_position_too(attention_options(9, {0, 5, 2})),
     {{.positions = Positions::per_head, .position_query = true}, {.block = 9, .depth = 2}}},
    // Head 1's window ends before its span, head 2's inside its ramp.
    {"attention, ragged windows with spans",
     span_options({12, 1, 9}),
     {{.span = kBetween}, {.streams = 1, .block = 3, .slots = 4, .span = {0.9, 0.3, 0.59}}}},
    {"attention, missing past",
     attention_options(6, {6, 6}),
     {{.past_valid = {2, 0}},
      {.streams = 4, .block = 2, .slots = 3, .past_valid = {6, 9, 1, 0}},
      {.streams = 1, .block = 9, .depth = 2, .positions = Positions::none, .past_valid = {0}}}},
    {"attention, missing past with spans",
     span_options({12, 0, 9}),
     {{.span = kBetween, .past_valid = {2, 0}},
      {.slots = 2, .span = kBetween, .past_valid = {0, 7}},
      {.block = 10, .slots = 2, .span = kBetween, .past_valid = {0, 7}},
      {.slots = 2, .span = kIntegers, .span_is_constant = true, .past_valid = {0, 4}}}},
    {"attention, missing past with the own position",
     own_position_too(attention_options(4, {4, 2})),
     {{.past_valid = {0, 3}}}},
    // Rings that have wrapped once, several times, and not yet; head 3's window divides the count.
    {"attention, ring",
     ring(attention_options(9, {7, 0, 3, 4}), 8),
     {{}, {.streams = 1, .block = 12, .depth = 1, .slots = 2}, {.block = 1, .past_valid = {5, 8}}}},
    {"attention, ring of long ago",
     ring(span_options({12, 5, 12}), 1000003),
     {{.span = kBetween}, {.streams = 1, .block = 1, .slots = 3, .span = kBetween}}},
    {"attention, ring not yet full",
     ring(own_position_too(attention_options(7, {7, 7})), 2),
     {{.past_valid = {2, 1}}, {.block = 8, .slots = 1, .past_valid = {2, 2}}}},
};

}  // namespace
}  // namespace engram::harness::attention_span_test
