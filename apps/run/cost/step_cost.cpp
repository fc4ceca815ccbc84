#include "apps/run/cost/step_cost.hpp"

namespace engram {

int values_per_parameter(OptimizerKind optimizer) { return optimizer == OptimizerKind::adam ? 4 : 3; }

double update_bytes(OptimizerKind optimizer, std::int64_t parameters) {
  return kFloatBytes * (2 * values_per_parameter(optimizer) - 1) * static_cast<double>(parameters);
}

}  // namespace engram
