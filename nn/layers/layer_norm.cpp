#include "nn/layers/layer_norm.hpp"

#include "autograd/functions/layer_norm.hpp"
#include "autograd/tape.hpp"
#include "nn/init.hpp"

namespace engram {

LayerNorm::LayerNorm(std::int64_t width, const LayerNormOptions& options)
    : epsilon_(options.epsilon),
      gain_({width}, options.gain_deviation > 0 ? init::normal(options.gain_deviation, 1) : init::ones()),
      bias_({width}, init::zeros()) {}

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
