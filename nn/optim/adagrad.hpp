#pragma once

#include "nn/optim/optimizer.hpp"

namespace engram {

/// Adagrad with per-tensor clipping, the rule that the character models were trained with: [all-attention 5.1].
class Adagrad final : public Optimizer {
 public:
  /// State starts at zero. The store must be placed.
  Adagrad(const OptimizerOptions& options, ParameterStore& store, Step& step);

 private:
  void update_group(Step& step, std::size_t group) override;

  kernels::AdagradOptions options_;
  State* accumulator_;
};

}  // namespace engram
