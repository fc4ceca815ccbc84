/// Rows that are normalised.

#include "apps/tour/trace/op_examples.hpp"
#include "autograd/functions.hpp"

namespace engram::tour {
namespace {

using Inputs = std::span<Variable>;
using Outputs = std::vector<Variable>;

OpExample batch_norm_example() {
  return {.name = "batch_norm",
          .source = "batch_norm",
          .formula = "every column of x with mean 0 and variance 1, then gain and bias",
          .inputs = {drawn("x", {3, 2}), drawn("gain", {2}), drawn("bias", {2}),
                     ExampleInput{.name = "mean", .shape = {2}, .numbers = {0, 0}, .constant = true},
                     ExampleInput{.name = "variance", .shape = {2}, .numbers = {1, 1}, .constant = true}},
          .outputs = {"y"},
          .function = [](Inputs x) {
            return Outputs{batch_norm(x[0], x[1], x[2], {x[3].value(), x[4].value()})};
          }};
}

}  // namespace

std::vector<OpExample> row_examples() {
  return {
      batch_norm_example(),
      {.name = "layer_norm",
       .source = "layer_norm",
       .formula = "y = gain (x - mean) / sqrt(variance + 1e-5) + bias, of every row",
       .inputs = {drawn("x", {2, 3}), drawn("gain", {3}), drawn("bias", {3})},
       .outputs = {"y"},
       .function = [](Inputs x) { return Outputs{layer_norm(x[0], x[1], x[2])}; }},
      {.name = "layer_norm_residual",
       .source = "layer_norm",
       .formula = "sum = x + residual, y = layer_norm(sum), in one pass",
       .inputs = {drawn("x", {2, 3}), drawn("residual", {2, 3}), drawn("gain", {3}), drawn("bias", {3})},
       .outputs = {"sum", "y"},
       .function =
           [](Inputs x) {
             ResidualNorm result = layer_norm_residual(x[0], x[1], x[2], x[3]);
             return Outputs{result.sum, result.normalised};
           }},
      {.name = "rms_norm",
       .source = "rms_norm",
       .formula = "y = gain x / sqrt(mean(x^2) + 1e-5), of every row",
       .inputs = {drawn("x", {2, 3}), drawn("gain", {3})},
       .outputs = {"y"},
       .function = [](Inputs x) { return Outputs{rms_norm(x[0], x[1])}; }},
      {.name = "l2_norm",
       .source = "rms_norm",
       .formula = "y = x / |x|, of every row",
       .inputs = {drawn("x", {2, 3})},
       .outputs = {"y"},
       .function = [](Inputs x) { return Outputs{l2_norm(x[0])}; }},
  };
}

}  // namespace engram::tour
