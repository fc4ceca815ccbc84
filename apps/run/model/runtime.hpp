#pragma once
/// What a command computes with: an opened device, the memory of steps and of what outlives them.

#include <cstdint>
#include <memory>

#include "core/allocator.hpp"
#include "core/arena.hpp"
#include "core/backend.hpp"
#include "core/step.hpp"

namespace engram {

class Runtime {
 public:
  /// `threads` of the host; 0: as many as there are. `seed`: of dropout. Throws NotAvailable or DeviceError when there
  /// is no such device, UsageError for a negative number of threads.
  explicit Runtime(Device device = {}, int threads = 0, std::uint64_t seed = 0);

  Backend& backend() { return *backend_; }
  /// For what outlives a step: parameters, caches.
  Allocator& memory() { return heap_; }
  Step& step() { return step_; }
  Arena& arena() { return arena_; }

 private:
  std::unique_ptr<Backend> backend_;
  HeapAllocator heap_;
  Arena arena_;
  Step step_;
};

}  // namespace engram
