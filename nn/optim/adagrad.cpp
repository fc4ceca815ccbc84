#include "nn/optim/adagrad.hpp"

namespace engram {

Adagrad::Adagrad(const OptimizerOptions& options, ParameterStore& store, Step& step)
    : Optimizer(options, store, step),
      options_{.clip = options.clip, .clip_gradient = options.clip_kind == ClipKind::per_tensor_gradient},
      accumulator_(&add_state(step, "squared_gradient_sum")) {}

void Adagrad::update_group(Step& step, std::size_t group) {
  ParameterGroup& parameters = store_->groups()[group];
  kernels::AdagradOptions options = options_;
  options.rate_share = rate_share(parameters);
  kernels::adagrad(step, parameters.gradients, parameters.segments, group_norms_[group], options, parameters.values,
                   accumulator_->blocks[group]);
}

}  // namespace engram
