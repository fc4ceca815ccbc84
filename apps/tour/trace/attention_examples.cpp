/// Attention in its largest form: context with positions, persistent slots, and the soft edge of an adaptive span.

#include "apps/tour/trace/op_examples.hpp"
#include "autograd/functions.hpp"
#include "autograd/tape.hpp"

namespace engram::tour {
namespace {

using Inputs = std::span<Variable>;
using Outputs = std::vector<Variable>;

Outputs outputs_of(const AttentionResult& result, Tape& tape) { return {result.out, tape.constant(result.lse)}; }

/// One head that sees up to two positions before its own; one position of the past, two of the block.
AttentionOptions small_context() { return {.heads = 1, .max_distance = 2, .windows = HeadWindows({2})}; }

OpExample context_example() {
  return {.name = "attention",
          .source = "attention",
          .formula = "out = sum of weight value; weights = softmax(query key + query position)",
          .inputs = {drawn("query", {1, 2, 2}), drawn("past_keys", {2, 2}), drawn("past_values", {2, 2}),
                     drawn("keys", {1, 2, 2}), drawn("values", {1, 2, 2}), drawn("positions", {2, 2})},
          .outputs = {"out", "lse"},
          .function = [](Inputs x) {
            return outputs_of(attention({{.content_query = x[0],
                                          .past_keys = x[1],
                                          .past_values = x[2],
                                          .keys = x[3],
                                          .values = x[4],
                                          .position_keys = x[5]}},
                                        small_context()),
                              x[0].tape());
          }};
}

OpExample slots_example() {
  return {.name = "attention_slots",
          .source = "attention",
          .formula = "attention to persistent slots alone: rows that are trained, not context",
          .inputs = {drawn("query", {1, 2, 2}), drawn("slot_keys", {1, 3, 2}), drawn("slot_values", {1, 3, 2})},
          .outputs = {"out", "lse"},
          .function = [](Inputs x) {
            return outputs_of(
                attention({{.content_query = x[0], .slot_keys = x[1], .slot_values = x[2]}}, {.heads = 1}),
                x[0].tape());
          }};
}

/// The mask falls from 1 to 0 over two positions. With a span of 0.3 of four it is 1, 1, 0.6 and 0.1 at distances 1
/// to 4.
OpExample span_example() {
  return {.name = "attention_span",
          .source = "attention",
          .formula = "attention under a span mask, clamp((ramp + S span - (distance - 1)) / ramp)",
          .inputs = {drawn("query", {1, 2, 2}), drawn("past_keys", {4, 2}), drawn("past_values", {4, 2}),
                     drawn("keys", {1, 2, 2}), drawn("values", {1, 2, 2}),
                     ExampleInput{.name = "span", .shape = {1}, .numbers = {0.3}}},
          .outputs = {"out", "lse"},
          .function = [](Inputs x) {
            return outputs_of(attention({{.content_query = x[0],
                                          .past_keys = x[1],
                                          .past_values = x[2],
                                          .keys = x[3],
                                          .values = x[4],
                                          .span = x[5]}},
                                        {.heads = 1, .max_distance = 4, .ramp = 2, .windows = HeadWindows({4})}),
                              x[0].tape());
          }};
}

}  // namespace

std::vector<OpExample> attention_examples() { return {context_example(), slots_example(), span_example()}; }

}  // namespace engram::tour
