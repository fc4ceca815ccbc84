#include "nn/layers/linear.hpp"

#include "autograd/tape.hpp"
#include "nn/init.hpp"

namespace engram {

Linear::Linear(std::int64_t in, std::int64_t out, bool with_bias)
    : Linear(in, out, LinearStart{init::uniform_fan_in(in), init::uniform_fan_in(in)}, with_bias) {}

Linear::Linear(std::int64_t in, std::int64_t out, const LinearStart& start, bool with_bias)
    : weight_({out, in}, start.weight) {
  if (with_bias) bias_.emplace(Shape{out}, start.bias);
}

Variable Linear::forward(const Variable& x, ProductResult result) {
  Tape& tape = x.tape();
  return linear(x, weight(tape), bias(tape), result);
}

void Linear::visit(Visitor& visit) {
  visit("weight", weight_);
  if (bias_) visit("bias", *bias_);
}

}  // namespace engram
