#pragma once
/// What training keeps in memory from the first step to the last, whatever it reads.

#include <cstdint>

#include "apps/run/cost/table_cost.hpp"
#include "nn/optim/optimizer.hpp"

namespace engram {

/// Bytes of parameters, gradients and optimiser state (f32), tables without gradients. parameters: of the whole model,
/// tables too. Throws UsageError where they do not fit 63 bits.
std::int64_t training_state_bytes(std::int64_t parameters, const TableSizes& tables, OptimizerKind optimizer);

}  // namespace engram
