#pragma once
/// A CPU backend, an arena and a step, with which steps 7 to 15 begin. It computes on one thread: for tensors of a few
/// hundred numbers, waking a second one costs more than the work. `observer`: of its step; nullptr: none.

#include <memory>

#include "core/arena.hpp"
#include "core/backend.hpp"
#include "core/step.hpp"

namespace engram::tour {

struct Workshop {
  explicit Workshop(KernelObserver* observer = nullptr) {
    backend->set_threads(1);
    step.observe(observer);
  }
  ~Workshop() { backend->set_threads(threads_before); }
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;

  std::unique_ptr<Backend> backend = open_backend({DeviceKind::cpu});
  int threads_before = backend->threads();
  HeapAllocator heap{*backend};  ///< for what outlives a step
  Arena arena{heap};
  Step step{*backend, arena, /*seed=*/1};
};

}  // namespace engram::tour
