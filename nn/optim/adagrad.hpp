#pragma once

#include "nn/optim/optimizer.hpp"

namespace engram {

/// Adagrad with per-tensor clipping, the rule that the character models were trained with: [all-attention 5.1].
class Adagrad final : public Optimizer {
 public:
  /// State starts at zero. The store must be placed.
  Adagrad(const OptimizerOptions& options, ParameterStore& store, Step& step, const UpdateRanks& with = {});

 private:
  void update_part(Step& step, std::size_t part) override;

  kernels::AdagradOptions options_;
  State* accumulator_;
};

}  // namespace engram
