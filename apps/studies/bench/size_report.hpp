#pragma once
/// Steps of several models beside each other: time against the floor, and what is outside of kernels (tape, memory, the
/// optimiser's lists), which grows with the number of kernels' calls and hardly with what they compute.

#include <cstdint>
#include <string>
#include <vector>

#include "apps/studies/bench/training_bench.hpp"

namespace engram {

struct StepOfSize {
  std::string name;
  std::int64_t parameters = 0;
  double seconds = 0;           ///< of a step: the median
  double least_seconds = 0;     ///< of a step, by the machine's limits
  std::int64_t calls = 0;       ///< of kernels, in a step
  double observed_seconds = 0;  ///< of a step whose kernels are observed: the mean
  double outside_seconds = 0;   ///< of that, outside of kernels

  double ratio() const { return seconds / least_seconds; }
  double outside_share() const { return outside_seconds / observed_seconds; }
  double outside_of_call() const { return outside_seconds / static_cast<double>(calls); }
};
StepOfSize step_of_size(const BenchCase& bench, const BenchResult& result);

/// In the order of the steps; empty unless there are several.
std::string table_of(const std::vector<StepOfSize>& steps);
/// By parameters: a step, its floor and what is outside of kernels in milliseconds, and the last also by call. At least
/// one step.
std::string svg_of(const std::vector<StepOfSize>& steps);

}  // namespace engram
