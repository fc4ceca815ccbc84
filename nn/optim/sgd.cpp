#include "nn/optim/sgd.hpp"

namespace engram {

Sgd::Sgd(const OptimizerOptions& options, ParameterStore& store, Step& step)
    : Optimizer(options, store, step), momentum_(options.momentum), velocity_(&add_state(step, "velocity")) {
  global_clip_ = options.clip;
}

void Sgd::update_group(Step& step, std::size_t group) {
  ParameterGroup& parameters = store_->groups()[group];
  kernels::sgd(step, parameters.gradients, scale_, {.momentum = momentum_, .rate_share = rate_share(parameters)},
               parameters.values, velocity_->blocks[group]);
}

}  // namespace engram
