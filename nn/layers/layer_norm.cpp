#include "nn/layers/layer_norm.hpp"

#include "autograd/functions/layer_norm.hpp"
#include "autograd/tape.hpp"
#include "nn/init.hpp"

namespace engram {
namespace {

constexpr double kEpsilon = 1e-5;

}  // namespace

LayerNorm::LayerNorm(std::int64_t width) : gain_({width}, init::ones()), bias_({width}, init::zeros()) {}

Variable LayerNorm::forward(const Variable& x, const Variable& residual) {
  Tape& tape = x.tape();
  return layer_norm_residual(x, residual, tape.parameter(gain_), tape.parameter(bias_), kEpsilon).normalised;
}

void LayerNorm::visit(Visitor& visit) {
  visit("gain", gain_);
  visit("bias", bias_);
}

}  // namespace engram
