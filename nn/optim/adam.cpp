#include "nn/optim/adam.hpp"

namespace engram {

Adam::Adam(const OptimizerOptions& options, ParameterStore& store, Step& step, const UpdateRanks& with)
    : Optimizer(options, store, step, with),
      options_{.beta1 = options.beta1,
               .beta2 = options.beta2,
               .epsilon = options.epsilon,
               .epsilon_at = options.epsilon_at,
               .weight_decay = options.weight_decay},
      first_(&add_state(step, "first_moment")),
      second_(&add_state(step, "second_moment")) {
  global_clip_ = options.clip;
}

void Adam::update_part(Step& step, std::size_t number) {
  Part& part = parts_[number];
  kernels::AdamOptions options = options_;
  options.rate_share = rate_share(part);
  if (group_of(part).name == kUndecayed) options.weight_decay = 0;
  kernels::adam(step, part.gradients, scale_, options, part.values, first_->parts[number], second_->parts[number]);
}

}  // namespace engram
