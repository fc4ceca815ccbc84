#pragma once

#include <vector>

#include "tests/harness/op_run.hpp"

namespace engram::harness {

/// All but the CPU. Presets of sanitizers have none (docs/architecture.md).
inline std::vector<Device> other_devices() {
  std::vector<Device> found;
  for (const auto& backend : available_backends())
    if (backend->device().kind != DeviceKind::cpu) found.push_back(backend->device());
  return found;
}

}  // namespace engram::harness
