/// Operations on one number at a time, and sums of them.

#include "apps/tour/trace/op_examples.hpp"
#include "autograd/functions.hpp"

namespace engram::tour {
namespace {

using Inputs = std::span<Variable>;
using Outputs = std::vector<Variable>;

OpExample activation(std::string_view name, std::string_view formula, Variable (*function)(const Variable&)) {
  return {.name = name,
          .source = "pointwise",
          .formula = formula,
          .inputs = {drawn("x", {2, 3})},
          .outputs = {"y"},
          .function = [function](Inputs x) { return Outputs{function(x[0])}; }};
}

std::vector<OpExample> dropout_examples() {
  return {{.name = "dropout",
           .source = "dropout",
           .formula = "y = x times 2 where a random number says keep, else 0",
           .inputs = {drawn("x", {2, 4})},
           .outputs = {"y"},
           .function = [](Inputs x) { return Outputs{dropout(x[0], 0.5)}; }},
          {.name = "variational_dropout",
           .source = "dropout",
           .formula = "dropout with one decision for all times: x is [stream, time, n]",
           .inputs = {drawn("x", {1, 3, 4})},
           .outputs = {"y"},
           .function = [](Inputs x) { return Outputs{variational_dropout(x[0], 0.5)}; }},
          {.name = "word_dropout",
           .source = "dropout",
           .formula = "dropout of whole rows, alike wherever an id occurs",
           .inputs = {drawn("x", {4, 2}), counts("ids", {4}, {0, 1, 0, 2})},
           .outputs = {"y"},
           .function = [](Inputs x) { return Outputs{word_dropout(x[0], x[1].value(), 0.5)}; }}};
}

}  // namespace

std::vector<OpExample> elementwise_examples() {
  std::vector<OpExample> all = dropout_examples();
  all.insert(all.end(),
             {activation("relu", "y = max(x, 0)", relu),
              activation("gelu", "y = x Phi(x), Phi being the normal distribution function", gelu),
              activation("tanh", "y = tanh(x)", tanh), activation("sigmoid", "y = 1 / (1 + exp(-x))", sigmoid),
              activation("silu", "y = x / (1 + exp(-x))", silu),
              OpExample{.name = "add",
                        .source = "add",
                        .formula = "y = a + b",
                        .inputs = {drawn("a", {2, 3}), drawn("b", {2, 3})},
                        .outputs = {"y"},
                        .function = [](Inputs x) { return Outputs{add(x[0], x[1])}; }},
              OpExample{.name = "add_bias",
                        .source = "add_bias",
                        .formula = "y[r, i] = x[r, i] + bias[i]",
                        .inputs = {drawn("x", {2, 3}), drawn("bias", {3})},
                        .outputs = {"y"},
                        .function = [](Inputs x) { return Outputs{add_bias(x[0], x[1])}; }},
              OpExample{.name = "relu_dropout",
                        .source = "relu_dropout",
                        .formula = "dropout of relu(x + bias) in one: 0, or 2 max(x[r, i] + bias[i], 0)",
                        .inputs = {drawn("x", {2, 3}), drawn("bias", {3})},
                        .outputs = {"y"},
                        .function = [](Inputs x) { return Outputs{relu_dropout(x[0], x[1], 0.5)}; }},
              OpExample{.name = "multiply",
                        .source = "multiply",
                        .formula = "y[r, i] = a[r, i] b[r], one number for each row",
                        .inputs = {drawn("a", {2, 3}), drawn("b", {2, 1})},
                        .outputs = {"y"},
                        .function = [](Inputs x) { return Outputs{multiply(x[0], x[1])}; }},
              OpExample{.name = "scale",
                        .source = "scale",
                        .formula = "y = 3 x",
                        .inputs = {drawn("x", {2, 3})},
                        .outputs = {"y"},
                        .function = [](Inputs x) { return Outputs{scale(x[0], 3)}; }},
              OpExample{.name = "sum",
                        .source = "sum",
                        .formula = "y = sum of all elements of x",
                        .inputs = {drawn("x", {2, 3})},
                        .outputs = {"y"},
                        .function = [](Inputs x) { return Outputs{sum(x[0])}; }}});
  return all;
}

}  // namespace engram::tour
