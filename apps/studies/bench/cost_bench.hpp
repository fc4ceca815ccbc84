#pragma once
/// What the kernels of a training step ask of a card, counted on a device that can (core/launch_cost.hpp), and the
/// least time that follows from it.

#include <string>
#include <vector>

#include "apps/studies/bench/card_limits.hpp"
#include "apps/studies/bench/training_bench.hpp"
#include "core/launch_cost.hpp"

namespace engram {

/// The launches of one slot (core/kernel.hpp) from one place in the source.
struct PlaceCost {
  LaunchCost cost;  ///< their sum
  /// On each of known_cards(): the sum of their least times, and what bounds the last.
  std::vector<CardTime> times;
};

struct KernelCost {
  std::string kernel;
  std::int64_t calls = 0;
  std::vector<PlaceCost> places;  ///< in the order in which they were first met
  std::vector<double> floors;     ///< on each of known_cards(): BenchResult::kernel_floor()

  double seconds(std::size_t card) const;
  CardTime::Bound bound(std::size_t card) const;
};

struct CostResult {
  std::int64_t tokens = 0;  ///< of the step
  std::int64_t parameters = 0;
  double flops = 0;                 ///< of the step, by the formulas of the model
  std::size_t device_bytes = 0;     ///< that the device had reserved
  int blocks = 0;                   ///< of each launch that were counted; 0: all
  std::vector<std::size_t> cards;   ///< the known_cards() that can do all of it
  std::vector<KernelCost> kernels;  ///< by their time on the first card, longest first
};

/// One step with full caches. Of every launch all blocks are counted, or so many that stand for the others
/// (LaunchSampling). The runtime must be fresh. Throws UsageError where its device cannot count.
CostResult count_costs(const BenchCase& bench, Runtime& runtime, int blocks = 0);

}  // namespace engram
