#pragma once
/// What a command computes with: an opened device, the memory of steps and of what outlives them.

#include <cstdint>
#include <memory>
#include <type_traits>

#include "core/allocator.hpp"
#include "core/arena.hpp"
#include "core/backend.hpp"
#include "core/communicator.hpp"
#include "core/counted_heap.hpp"
#include "core/step.hpp"

namespace engram {

class Runtime {
 public:
  /// `threads` of the host; 0: as many as there are. `seed`: of dropout. Throws NotAvailable or DeviceError when there
  /// is no such device, UsageError for a negative number of threads.
  /// `ranks`: it must outlive the runtime; nullptr: one. Where there are several, all make theirs together.
  explicit Runtime(Device device = {}, int threads = 0, std::uint64_t seed = 0, Communicator* ranks = nullptr);
  /// With a backend that is open already.
  Runtime(std::unique_ptr<Backend> backend, int threads, std::uint64_t seed, Communicator* ranks);

  Backend& backend() { return *backend_; }
  /// For what outlives a step: parameters, caches.
  Allocator& memory() { return heap_; }
  /// Bytes of that memory in use, without what steps have.
  std::size_t bytes_in_use() const { return heap_.bytes() - arena_.slab_bytes(); }
  Step& step() { return step_; }
  Arena& arena() { return arena_; }
  /// The processes that compute together, by what carries the device's memory.
  Communicator& ranks() { return *ranks_; }

  /// Calls `use` with a step that has just begun, ends the step and returns what `use` returned. Everything that `use`
  /// made of the step's memory must be gone by then: its tape and trace are best its own variables. What it throws
  /// leaves the step as it is, for the next one to begin.
  template <class Use>
  auto in_step(Use&& use, const StepScalars& scalars = {}) {
    step_.begin(scalars);
    if constexpr (std::is_void_v<std::invoke_result_t<Use&, Step&>>) {
      use(step_);
      arena_.end_step();
    } else {
      auto result = use(step_);
      arena_.end_step();
      return result;
    }
  }

 private:
  std::unique_ptr<Backend> backend_;
  CountedHeap heap_;
  Arena arena_;
  Step step_;
  OneRank one_;
  Communicator* ranks_;
  std::unique_ptr<Communicator> device_ranks_;  // where `ranks_` is another than was given
};

}  // namespace engram
