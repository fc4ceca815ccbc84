#pragma once

#include "nn/optim/optimizer.hpp"

namespace engram {

/// Stochastic gradient descent with momentum, plain or Nesterov's, and clipping by the global norm.
class Sgd final : public Optimizer {
 public:
  /// State starts at zero. The store must be placed.
  Sgd(const OptimizerOptions& options, ParameterStore& store, Step& step, const UpdateRanks& with = {});

 private:
  void update_part(Step& step, std::size_t part) override;

  double momentum_;
  bool nesterov_;
  State* velocity_;
};

}  // namespace engram
