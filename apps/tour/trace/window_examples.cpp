/// Attention over short windows, as recurrent models have it.

#include "apps/tour/trace/op_examples.hpp"
#include "autograd/functions.hpp"
#include "autograd/tape.hpp"

namespace engram::tour {
namespace {

using Inputs = std::span<Variable>;
using Outputs = std::vector<Variable>;

Outputs outputs_of(const WindowedResult& result, Tape& tape) { return {result.context, tape.constant(result.weights)}; }

/// Three positions of one sequence.
ExampleInput first_three() { return counts("preceding", {1, 3}, {0, 1, 2}); }

}  // namespace

std::vector<OpExample> window_examples() {
  return {
      {.name = "window_attention_additive",
       .source = "window_attention_additive",
       .formula = "softmax over the 2 rows before of score . tanh(key + query), times values",
       .inputs = {drawn("keys", {1, 3, 2}), drawn("queries", {1, 3, 2}), drawn("score", {2}),
                  drawn("values", {1, 3, 2}), first_three()},
       .outputs = {"context", "weights"},
       .function =
           [](Inputs x) {
             return outputs_of(window_attention_additive(x[0], x[1], x[2], x[3], x[4].value(), {.window = 2}),
                               x[0].tape());
           }},
      {.name = "window_attention_dot",
       .source = "window_attention_dot",
       .formula = "softmax over 2 rows, the own one last, of (key + position) . query",
       .inputs = {drawn("keys", {1, 3, 2}), drawn("queries", {1, 3, 2}), drawn("values", {1, 3, 2}),
                  drawn("position_keys", {2, 2}), drawn("position_values", {2, 2}), first_three()},
       .outputs = {"context", "weights"},
       .function =
           [](Inputs x) {
             return outputs_of(window_attention_dot(x[0], x[1], x[2], x[3], x[4], x[5].value(), /*window=*/2),
                               x[0].tape());
           }},
  };
}

}  // namespace engram::tour
