#include "nn/optim/adagrad.hpp"

namespace engram {

Adagrad::Adagrad(const OptimizerOptions& options, ParameterStore& store, Step& step, const UpdateRanks& with)
    : Optimizer(options, store, step, with),
      options_{.clip = options.clip, .clip_gradient = options.clip_kind == ClipKind::per_tensor_gradient},
      accumulator_(&add_state(step, "squared_gradient_sum")) {}

void Adagrad::update_part(Step& step, std::size_t number) {
  Part& part = parts_[number];
  kernels::AdagradOptions options = options_;
  options.rate_share = rate_share(part);
  kernels::adagrad(step, part.gradients, part.segments, part.squared_norms, options, part.values,
                   accumulator_->parts[number]);
}

}  // namespace engram
