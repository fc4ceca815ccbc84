#include "apps/run/cost/training_state.hpp"

#include "apps/run/cost/step_cost.hpp"
#include "core/error.hpp"

namespace engram {

std::int64_t training_state_bytes(std::int64_t parameters, const TableSizes& tables, OptimizerKind optimizer) {
  constexpr std::int64_t kStoredBytes = 4;
  const std::int64_t of_parameter = values_per_parameter(optimizer) * kStoredBytes;
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(parameters - tables.parameters(), of_parameter, &bytes) ||
      __builtin_add_overflow(bytes, tables.value_bytes, &bytes) ||
      __builtin_add_overflow(bytes, tables.state_bytes, &bytes))
    throw UsageError(text("model: parameters, gradients and optimiser state must be less than 2^63 bytes, got ",
                          parameters, " parameters"));
  return bytes;
}

}  // namespace engram
