/// Products of matrices.

#include "apps/tour/trace/op_examples.hpp"
#include "autograd/functions.hpp"

namespace engram::tour {
namespace {

using Inputs = std::span<Variable>;
using Outputs = std::vector<Variable>;

}  // namespace

std::vector<OpExample> product_examples() {
  return {
      {.name = "matmul",
       .source = "matmul",
       .formula = "y = a b; da = dy b^T, db = a^T dy",
       .inputs = {drawn("a", {2, 3}), drawn("b", {3, 2})},
       .outputs = {"y"},
       .function = [](Inputs x) { return Outputs{matmul(x[0], x[1])}; }},
      {.name = "linear",
       .source = "linear",
       .formula = "y = x weight^T + bias",
       .inputs = {drawn("x", {2, 3}), drawn("weight", {4, 3}), drawn("bias", {4})},
       .outputs = {"y"},
       .function = [](Inputs x) { return Outputs{linear(x[0], x[1], x[2])}; }},
      {.name = "joined_linear",
       .source = "joined_linear",
       .formula = "y = (x v^T + c, x w^T + d): several weights, one below the other",
       .inputs = {drawn("x", {2, 3}), drawn("v", {2, 3}), drawn("w", {1, 3}), drawn("c", {2}), drawn("d", {1})},
       .outputs = {"y"},
       .function = [](Inputs x) { return Outputs{joined_linear(x[0], x.subspan(1, 2), x.subspan(3, 2))}; }},
      {.name = "project_past",
       .source = "project_past",
       .formula = "keys and values of cached states, of each head as many as its window: 2 and 1",
       .inputs = {drawn_constant("cache", {1, 3, 3}), drawn("key_weight", {4, 3}), drawn("value_weight", {4, 3})},
       .outputs = {"keys", "values"},
       .function =
           [](Inputs x) {
             PastProjections past = project_past(x[0].value(), x[1], x[2], HeadWindows({2, 1}));
             return Outputs{std::move(past.keys), std::move(past.values)};
           }},
  };
}

}  // namespace engram::tour
