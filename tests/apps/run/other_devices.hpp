#pragma once

#include <algorithm>
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

/// Tests of what only the simulated device can be told to do have nothing to run without it.
inline bool has_simulated_device() {
  return std::ranges::any_of(other_devices(), [](const Device& one) { return one.kind == DeviceKind::simulated; });
}

}  // namespace engram::harness
