#include "apps/tour/trace/op_examples.hpp"
#include "autograd/functions/softmax.hpp"

namespace engram::tour {

OpExample softmax_example() {
  return {.name = "softmax",
          .source = "softmax",
          .formula = "y[r, i] = exp(x[r, i]) / sum over j of exp(x[r, j])",
          .inputs = {drawn("x", {2, 3})},
          .outputs = {"y"},
          .function = [](std::span<Variable> x) { return std::vector{softmax(x[0])}; }};
}

}  // namespace engram::tour
