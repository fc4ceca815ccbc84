/// Operations that only move numbers.

#include "apps/tour/trace/op_examples.hpp"
#include "autograd/functions.hpp"

namespace engram::tour {
namespace {

using Inputs = std::span<Variable>;
using Outputs = std::vector<Variable>;

}  // namespace

std::vector<OpExample> shape_examples() {
  return {
      {.name = "concat",
       .source = "concat",
       .formula = "y = a and b side by side",
       .inputs = {drawn("a", {2, 2}), drawn("b", {2, 1})},
       .outputs = {"y"},
       .function = [](Inputs x) { return Outputs{concat(x, 1)}; }},
      {.name = "reshape",
       .source = "reshape",
       .formula = "y = the numbers of x in the same order as [3, 2], in the same memory",
       .inputs = {drawn("x", {2, 3})},
       .outputs = {"y"},
       .function =
           [](Inputs x) {
             return Outputs{reshape(x[0], {3, 2})};
           }},
      {.name = "slice",
       .source = "slice",
       .formula = "y = columns 1 and 2 of x",
       .inputs = {drawn("x", {2, 4})},
       .outputs = {"y"},
       .function = [](Inputs x) { return Outputs{slice(x[0], 1, 1, 3)}; }},
      {.name = "delayed_slices",
       .source = "delayed_slices",
       .formula = "y[t] = first half of x[t], second half of x[t - 1] if that belongs to it",
       .inputs = {drawn("x", {1, 3, 4}), counts("preceding", {1, 3}, {0, 1, 0})},
       .outputs = {"y"},
       .function = [](Inputs x) { return Outputs{delayed_slices(x[0], x[1].value(), 2)}; }},
  };
}

}  // namespace engram::tour
