#pragma once
/// What cards can do, from their makers' sheets, and the least time in which one could do what was counted.

#include <span>
#include <string_view>

#include "apps/studies/bench/machine_limits.hpp"
#include "core/launch_cost.hpp"

namespace engram {

/// Rates of a whole card at the clock that it reaches at most.
struct CardLimits {
  std::string_view name;
  int capability;  ///< major times 10 plus minor
  int multiprocessors;
  double clock;                  ///< Hz
  double bytes_per_second;       ///< of its memory
  double bf16_flops_per_second;  ///< of tensor cores, dense, sums in f32
  double f32_flops_per_second;   ///< without tensor cores

  /// Each multiprocessor takes 16 exponentials a clock.
  double exponentials_per_second() const { return 16 * multiprocessors * clock; }
  /// For BenchResult::kernel_floor().
  MachineLimits as_machine(ProductPrecision products) const;
};

/// H200, A100 and RTX 4090. Sources: NVIDIA's data sheets of the H200 SXM and of the A100 80GB SXM, the white paper of
/// the Ada architecture; rates a clock: CUDA C++ Programming Guide, "Arithmetic Instructions", compute capability 8.0,
/// 8.9 and 9.0.
std::span<const CardLimits> known_cards();

/// Whether the card can do what the launch did: products by warpgroups are of compute capability 9.0 alone.
bool can_launch(const CardLimits& card, const LaunchCost& launch);

/// What takes longest, and how long.
struct CardTime {
  enum class Bound : std::uint8_t { nothing, memory, l1, issue, mma, exponentials, product };
  double seconds = 0;
  Bound bound = Bound::nothing;
};
const char* name_of(CardTime::Bound bound);

/// The least time of one launch on a card, whatever its caches, latencies and the order of its warps: the largest of
/// - memory: distinct bytes at the memory's rate;
/// - l1: wavefronts of shared memory, and of global memory one a request or four sectors, one a clock;
/// - issue: instructions, four a clock, of launches whose instructions are known;
/// - mma: 4,096 FLOPs each on tensor cores;
/// - exponentials: 16 a clock;
/// - product: a library's FLOPs.
/// All but memory and products are of as many multiprocessors as the launch has blocks.
CardTime least_time(const LaunchCost& launch, const CardLimits& card);

}  // namespace engram
