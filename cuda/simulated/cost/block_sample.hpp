#pragma once
/// Some blocks of a launch, counted, and what all of them cost if the others are like those.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/launch_cost.hpp"
#include "cuda/simulated/cost/access_counter.hpp"
#include "cuda/simulated/launch_record.hpp"
#include "cuda/simulated/reservations.hpp"

namespace engram::simulated {

/// The memory of a launch in parts: one from each address among its arguments up to the next.
class LaunchMemory {
 public:
  LaunchMemory(const LaunchRecord& launch, const Reservations& reservations);

  std::size_t parts() const { return begins_.size() + 1; }
  /// The part of a sector; 0: before all that the arguments say.
  std::size_t part_of(std::uintptr_t sector) const;
  /// Equal for launches that differ in addresses alone, in these by whole lines of 128 bytes, and in which operation
  /// of the step draws their random numbers.
  std::string likeness(const LaunchRecord& launch) const;

 private:
  const Reservations* reservations_;
  std::vector<std::uintptr_t> begins_;  // ascending
};

/// What a block touches of one part.
struct TouchedPart {
  std::int64_t sectors = 0;
  std::uintptr_t low = UINTPTR_MAX, high = 0;  ///< the first and the last of them
};

struct SampledBlock {
  std::int64_t number = 0;
  LaunchCost cost;
  std::vector<TouchedPart> reads, writes;  ///< by part

  void take(const AccessCounter& counter, const LaunchMemory& memory);
};

/// The first block, the last, and of each of wanted - 2 equal stretches between them one, which lies anywhere in it so
/// that nothing periodic is met in step. All, if there are no more.
std::vector<SampledBlock> choose_blocks(std::int64_t blocks, int wanted);

/// Counts add up, blocks between the first and the last each as the mean of those that were counted. Memory that must
/// be moved: of each part what the blocks touch one by one, but no more than lies between the first and the last
/// sector that any touches; so what all blocks read counts once.
LaunchCost cost_of_all(std::int64_t blocks, std::span<const SampledBlock> sampled);

}  // namespace engram::simulated
