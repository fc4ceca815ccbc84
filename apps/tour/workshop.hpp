#pragma once
/// A CPU backend, an arena and a step, which steps 7 to 15 all begin with.

#include <memory>

#include "core/arena.hpp"
#include "core/backend.hpp"
#include "core/step.hpp"

namespace engram::tour {

struct Workshop {
  std::unique_ptr<Backend> backend = open_backend({DeviceKind::cpu});
  HeapAllocator heap{*backend};  ///< for what outlives a step
  Arena arena{heap};
  Step step{*backend, arena, /*seed=*/1};
};

}  // namespace engram::tour
