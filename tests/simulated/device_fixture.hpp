#pragma once
/// The simulated device with a step on it, for launches of single kernels on host memory.

#include <memory>
#include <vector>

#include "core/backend.hpp"
#include "core/step.hpp"
#include "cuda/simulated/backend.hpp"

namespace engram::cuda::tests {

struct DeviceFixture {
  std::unique_ptr<Backend> backend = open_backend({DeviceKind::simulated, 0});
  HeapAllocator memory{*backend};
  Step step{*backend, memory};

  simulated::RunOptions& options() { return simulated::engine_of(*backend).options; }
};

/// Forward, reversed, and two shuffles.
inline std::vector<simulated::RunOptions> run_orders() {
  using simulated::RunOrder;
  return {{.order = RunOrder::forward},
          {.order = RunOrder::reversed},
          {.order = RunOrder::shuffled, .seed = 7},
          {.order = RunOrder::shuffled, .seed = 8}};
}

}  // namespace engram::cuda::tests
