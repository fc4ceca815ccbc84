#pragma once
/// One simulated thread: its place in the launch, its fiber, and what it waits for.

#include <cstdint>

#include "cuda/simulated/fiber.hpp"
#include "cuda/simulated/place.hpp"
#include "cuda/simulated/site.hpp"
#include "cuda/simulated/warp.hpp"

namespace engram::simulated {

class Block;

struct Thread : Place {
  enum class State : std::uint8_t { ready, at_barrier, at_collective, at_warpgroup, exited };

  Fiber fiber;
  Block* owner = nullptr;
  int number = 0;  ///< in its block: x + block_size.x (y + block_size.y z)
  State state = State::exited;
  Site site;               ///< of what it waits in
  std::uint32_t mask = 0;  ///< of the collective that it waits in
  const Meeting* meeting = nullptr;

  int lane() const { return number % kWarpSize; }
};

}  // namespace engram::simulated
