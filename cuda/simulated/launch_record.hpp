#pragma once
/// One launch as the engine sees it, and the orders in which it may run.

#include <cstddef>
#include <cstdint>

#include "cuda/simulated/place.hpp"

namespace engram::simulated {

struct LaunchRecord {
  Index3 blocks;
  Index3 threads;  ///< of a block
  std::size_t shared_bytes = 0;
  void (*kernel)(const void* arguments) = nullptr;  ///< runs one thread
  const void* arguments = nullptr;
  std::size_t argument_bytes = 0;
  const void* scalars = nullptr;   ///< of the step, which random streams among the arguments read
  const void* function = nullptr;  ///< what it calls: the kernel itself
  const char* file = "";           ///< of the call of launch()
  int line = 0;
  const char* caller = "";  ///< the function that calls launch()

  std::int64_t block_count() const { return std::int64_t{blocks.x} * blocks.y * blocks.z; }
  int thread_count() const { return static_cast<int>(threads.x * threads.y * threads.z); }
};

/// A correct kernel gives the same bits in every order; a card promises none.
enum class RunOrder : std::uint8_t { forward, reversed, shuffled };

/// Belongs to the device (cuda/simulated/backend.hpp) and holds for its next launches.
struct RunOptions {
  RunOrder order = RunOrder::forward;  ///< of the blocks, and of the threads wherever several could run
  std::uint64_t seed = 1;              ///< of `shuffled`
};

}  // namespace engram::simulated
