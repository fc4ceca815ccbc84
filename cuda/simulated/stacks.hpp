#pragma once
/// Stacks of simulated threads: 64 KiB each (256 KiB under a sanitizer, whose frames are larger), with a page below
/// that may not be touched, so that a kernel with too large local arrays ends in a segmentation fault instead of
/// silence.

#include <cstddef>
#include <vector>

#include "cuda/simulated/fiber.hpp"

namespace engram::simulated {

class Stacks {
 public:
#if defined(ENGRAM_SIMULATED_TSAN) || defined(ENGRAM_SIMULATED_ASAN)
  static constexpr std::size_t kBytes = 256 << 10;
#else
  static constexpr std::size_t kBytes = 64 << 10;
#endif

  Stacks() = default;
  ~Stacks();
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  /// Stack number `index`; makes those that do not exist yet. Memory is used when it is touched. Throws DeviceError
  /// when the system gives no more.
  StackBounds at(std::size_t index);

 private:
  std::vector<void*> mappings_;
};

}  // namespace engram::simulated
