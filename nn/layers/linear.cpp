#include "nn/layers/linear.hpp"

#include "autograd/tape.hpp"
#include "nn/init.hpp"

namespace engram {

Linear::Linear(std::int64_t in, std::int64_t out, bool with_bias) : weight_({out, in}, init::uniform_fan_in(in)) {
  if (with_bias) bias_.emplace(Shape{out}, init::uniform_fan_in(in));
}

Linear::Linear(std::int64_t in, std::int64_t out, const Initializer& weights)
    : weight_({out, in}, weights), bias_(std::in_place, Shape{out}, init::zeros()) {}

Variable Linear::forward(const Variable& x, ProductResult result) {
  Tape& tape = x.tape();
  return linear(x, tape.parameter(weight_), bias_ ? tape.parameter(*bias_) : Variable(), result);
}

void Linear::visit(Visitor& visit) {
  visit("weight", weight_);
  if (bias_) visit("bias", *bias_);
}

}  // namespace engram
