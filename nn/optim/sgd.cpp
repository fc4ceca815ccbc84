#include "nn/optim/sgd.hpp"

namespace engram {

Sgd::Sgd(const OptimizerOptions& options, ParameterStore& store, Step& step, const UpdateRanks& with)
    : Optimizer(options, store, step, with),
      momentum_(options.momentum),
      nesterov_(options.nesterov),
      velocity_(&add_state(step, "velocity")) {
  global_clip_ = options.clip;
}

void Sgd::update_part(Step& step, std::size_t number) {
  Part& part = parts_[number];
  kernels::sgd(step, part.gradients, scale_,
               {.momentum = momentum_, .rate_share = rate_share(part), .nesterov = nesterov_}, part.values,
               velocity_->parts[number]);
}

}  // namespace engram
