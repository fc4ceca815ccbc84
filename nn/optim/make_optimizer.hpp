#pragma once
/// The optimizer that options ask for.

#include <memory>

#include "nn/optim/optimizer.hpp"

namespace engram {

/// The store must be placed; `step` clears the state. Throws UsageError when the options are not valid.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options, ParameterStore& store, Step& step,
                                          const UpdateRanks& with = {});

}  // namespace engram
