#include "nn/layers/layer_norm.hpp"

#include "autograd/functions/layer_norm.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"

namespace engram {

LayerNorm::LayerNorm(std::int64_t width, const Initializer& gain, double epsilon)
    : gain_({width}, gain), bias_({width}, init::zeros()), epsilon_(epsilon) {
  if (!(epsilon > 0)) throw UsageError(text("layer norm: epsilon must be above 0, got ", epsilon));
}

Variable LayerNorm::forward(const Variable& x) {
  Tape& tape = x.tape();
  return layer_norm(x, tape.parameter(gain_), tape.parameter(bias_), epsilon_);
}

Variable LayerNorm::forward(const Variable& x, const Variable& residual) {
  Tape& tape = x.tape();
  return layer_norm_residual(x, residual, tape.parameter(gain_), tape.parameter(bias_), epsilon_).normalised;
}

void LayerNorm::visit(Visitor& visit) {
  visit("gain", gain_);
  visit("bias", bias_);
}

}  // namespace engram
