/// Losses that are roots of backward.

#include <utility>

#include "apps/tour/trace/op_examples.hpp"
#include "autograd/functions.hpp"
#include "autograd/tape.hpp"

namespace engram::tour {
namespace {

using Inputs = std::span<Variable>;
using Outputs = std::vector<Variable>;

/// Of two rows, each half of the loss.
ExampleInput row_weights() { return {.name = "row_weight", .shape = {2}, .numbers = {0.5, 0.5}, .constant = true}; }

}  // namespace

std::vector<OpExample> loss_examples() {
  return {
      {.name = "cross_entropy",
       .source = "cross_entropy",
       .formula = "loss = sum over rows of row_weight (log sum exp x - x[target])",
       .inputs = {drawn("x", {2, 3}), counts("targets", {2}, {2, 0}), row_weights()},
       .outputs = {"loss", "row_loss"},
       .function =
           [](Inputs x) {
             Tape& tape = x[0].tape();
             const CrossEntropy result = cross_entropy(std::move(x[0]), x[1].value(), x[2].value());
             return Outputs{result.loss, tape.constant(result.row_loss)};
           },
       .root = true},
      {.name = "linear_cross_entropy",
       .source = "linear_cross_entropy",
       .formula = "cross_entropy(x weight^T + bias), a row of logits at a time in memory",
       .inputs = {drawn("x", {2, 2}), drawn("weight", {3, 2}), drawn("bias", {3}), counts("targets", {2}, {2, 0}),
                  row_weights()},
       .outputs = {"loss", "row_loss"},
       .function =
           [](Inputs x) {
             const LinearCrossEntropy result =
                 linear_cross_entropy(x[0], x[1], x[2], x[3].value(), x[4].value(), /*rows=*/1);
             return Outputs{result.loss, x[0].tape().constant(result.row_loss)};
           },
       .root = true},
  };
}

}  // namespace engram::tour
