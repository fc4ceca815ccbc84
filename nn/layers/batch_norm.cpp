#include "nn/layers/batch_norm.hpp"

#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "nn/init.hpp"

namespace engram {

BatchNorm::BatchNorm(std::int64_t width, BatchNormRule rule)
    : gain_({width}, init::ones()),
      bias_({width}, init::zeros()),
      running_mean_({width}, init::zeros(), Gradient::none),
      running_variance_({width}, init::ones(), Gradient::none),
      rule_(rule) {
  if (width < 1) throw UsageError(text("batch norm: width must be at least 1, got ", width));
  if (!(rule.epsilon > 0)) throw UsageError(text("batch norm: epsilon must be above 0, got ", rule.epsilon));
  if (!(rule.momentum >= 0 && rule.momentum <= 1))
    throw UsageError(text("batch norm: momentum must be from 0 to 1, got ", rule.momentum));
}

Variable BatchNorm::forward(const Variable& x, const RowMask& mask) {
  Tape& tape = x.tape();
  BatchNormRule rule = rule_;
  if (running_mean_.frozen() && running_variance_.frozen()) rule.momentum = 0;  // they stay as they are
  return batch_norm(x, tape.parameter(gain_), tape.parameter(bias_), {running_mean_.value(), running_variance_.value()},
                    mask, rule);
}

void BatchNorm::visit(Visitor& visit) {
  visit("gain", gain_);
  visit("bias", bias_);
  visit("running_mean", running_mean_);
  visit("running_variance", running_variance_);
}

}  // namespace engram
