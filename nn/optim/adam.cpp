#include "nn/optim/adam.hpp"

namespace engram {

Adam::Adam(const OptimizerOptions& options, ParameterStore& store, Step& step)
    : Optimizer(options, store, step),
      options_{.beta1 = options.beta1,
               .beta2 = options.beta2,
               .epsilon = options.epsilon,
               .epsilon_at = options.epsilon_at,
               .weight_decay = options.weight_decay},
      first_(&add_state(step, "first_moment")),
      second_(&add_state(step, "second_moment")) {
  global_clip_ = options.clip;
}

void Adam::update_group(Step& step, std::size_t group) {
  ParameterGroup& parameters = store_->groups()[group];
  kernels::AdamOptions options = options_;
  options.rate_share = rate_share(parameters);
  if (parameters.name == kUndecayed) options.weight_decay = 0;
  kernels::adam(step, parameters.gradients, scale_, options, parameters.values, first_->blocks[group],
                second_->blocks[group]);
}

}  // namespace engram
