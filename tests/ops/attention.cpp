/// Op-table entries of attention: what is computed, without spans and with whole windows. Spans and ragged windows:
/// attention_span.cpp; dropout: attention_dropout.cpp; wrong calls: attention_errors.cpp.

#include "autograd/functions/attention.hpp"

#include "autograd/tape.hpp"
#include "tests/ops/attention_truth.hpp"

namespace engram::harness::attention_test {
namespace {

using Positions = AttentionInputSizes::Positions;

AttentionOptions own_position_too(AttentionOptions options) {
  options.min_distance = 0;
  return options;
}

/// One variable as query, key and value, another as keys and values of the slots: gradients must add up.
OpCase self_attention() {
  const AttentionOptions options = own_position_too(attention_options(3, {3, 3}));
  OpCase op;
  op.name = "attention, one variable as several inputs";
  op.inputs = {{normal({2, 6, 4}), normal({2, 5, 2}), normal({12, 2})}};
  op.function = [options](std::span<const Variable> x) {
    return attention({{.content_query = x[0],
                       .position_query = x[0],
                       .past_keys = x[2],
                       .past_values = x[2],
                       .keys = x[0],
                       .values = x[0],
                       .slot_keys = x[1],
                       .slot_values = x[1]}},
                     options)
        .out;
  };
  op.reference = [options](std::span<const Array64> x) {
    std::vector<Array64> all(kAttentionArguments);
    for (const int place : {kContentQuery, kPositionQuery, kKeys, kValues}) all[static_cast<std::size_t>(place)] = x[0];
    all[kSlotKeys] = all[kSlotValues] = x[1];
    all[kPastKeys] = all[kPastValues] = x[2];
    return attention_truth(all, options).out;
  };
  return op;
}

const AttentionCases cases{
    {"attention, context",
     attention_options(7, {7, 7}),
     {{},
      {.streams = 1, .block = 1, .depth = 5},
      {.block = 19, .depth = 1, .positions = Positions::none},
      {.streams = 5, .block = 3, .positions = Positions::per_head, .position_query = true}}},
    {"attention, context with the own position",
     own_position_too(attention_options(6, {6, 6, 6})),
     {{.positions = Positions::per_head, .position_query = true},
      {.streams = 1, .block = 9, .position_query = true},
      {.streams = 1, .block = 1, .depth = 1, .positions = Positions::none}}},
    // Tiles of 32 queries for short windows and of 64 for long ones; neither divides the block.
    {"attention, several tiles", attention_options(37, {37}), {{.streams = 1, .block = 67, .depth = 2, .slots = 3}}},
    {"attention, several long tiles",
     attention_options(150, {150}),
     {{.streams = 1, .block = 131, .depth = 1, .slots = 1}}},
    // Whole tiles have rows of 271 and 257 columns, their shorter last ones would have 256.
    {"attention, rows of a power of two in the last tile",
     attention_options(208, {208}),
     {{.streams = 1, .block = 113, .depth = 1}}},
    {"attention, rows of a power of two in a nearly whole tile",
     attention_options(194, {194}),
     {{.streams = 1, .block = 127, .depth = 1}}},
    {"attention, slots only",
     attention_options(0, {0, 0}),
     {{.slots = 5},
      {.streams = 1, .block = 1, .slots = 1},
      {.streams = 1, .block = 3, .slots = 1031},
      {.streams = 3, .block = 70, .depth = 1, .slots = 2}}},
    {"attention, context and slots",
     attention_options(5, {5, 5}),
     {{.slots = 0},
      {.slots = 5, .position_query = true},
      {.streams = 1, .block = 2, .depth = 2, .slots = 1031, .positions = Positions::per_head},
      {.streams = 6, .block = 1, .depth = 7, .slots = 2, .positions = Positions::none},
      {.streams = 5, .block = 8, .slots = 3}}},
    {"attention, slots too many to be copied beside the context",
     attention_options(5, {5}),
     {{.streams = 1, .block = 8, .depth = 32, .slots = 520}}},
    {"attention, own position and slots",
     own_position_too(attention_options(4, {4, 4})),
     {{.slots = 3}, {.block = 7, .slots = 3, .positions = Positions::none, .position_query = true}}},
    // Windows of 0: with min_distance 0 a query sees itself alone, with 1 it sees nothing at all.
    {"attention, no window", own_position_too(attention_options(3, {0, 0})), {{}, {.slots = 2}}},
    {"attention, nothing to see",
     attention_options(3, {0, 0}),
     {{}, {.positions = Positions::none, .position_query = true}, {.slots = 0}, {.slots = 2}}},
};
const OpCases more{self_attention()};

}  // namespace
}  // namespace engram::harness::attention_test
