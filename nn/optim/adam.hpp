#pragma once

#include "nn/optim/optimizer.hpp"

namespace engram {

/// Adam (Kingma, Ba, 2015) with bias correction and clipping by the global norm.
class Adam final : public Optimizer {
 public:
  /// State starts at zero. The store must be placed.
  Adam(const OptimizerOptions& options, ParameterStore& store, Step& step, const UpdateRanks& with = {});

 private:
  void update_part(Step& step, std::size_t part) override;

  kernels::AdamOptions options_;
  State* first_;
  State* second_;
};

}  // namespace engram
