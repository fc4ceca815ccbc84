#pragma once
/// Whole training steps of a config's model on random tokens, timed: the trainer's own steps with a full past, with the
/// spans that are asked for and a learning rate of 0, so that spans and cost stay what they are.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "apps/run/cost/step_cost.hpp"
#include "apps/run/model/runtime.hpp"
#include "apps/studies/bench/bench_model.hpp"
#include "apps/studies/bench/kernel_times.hpp"
#include "apps/studies/bench/machine_limits.hpp"

namespace engram {

struct BenchResult {
  StepCost cost;
  std::int64_t tokens = 0;      ///< of a step
  std::vector<double> seconds;  ///< of every timed step, ascending
  /// Seconds of steps with kernels handed over one by one, where a device can also replay whole steps; else empty.
  std::vector<double> seconds_one_by_one;
  double least_seconds = 0;  ///< of a step, by the machine's limits
  std::int64_t parameters = 0;
  std::size_t parameter_bytes = 0;  ///< values, gradients, optimiser state; of tables and buffers values alone
  std::size_t arena_bytes = 0;      ///< most that a step had in use at once
  std::size_t resident_bytes = 0;   ///< most that the process had, 0 when the system does not say
  std::size_t device_bytes = 0;     ///< what the device had in use at the end, 0 where that is the process's
  KernelTimes kernels;              ///< of as many steps together
  double observed_seconds = 0;      ///< of those steps, which are slower where a device works behind the host

  explicit BenchResult(Backend& backend) : kernels(backend) {}
  double median_seconds() const { return seconds[seconds.size() / 2]; }
  /// 0 where there are none.
  double median_one_by_one() const {
    return seconds_one_by_one.empty() ? 0 : seconds_one_by_one[seconds_one_by_one.size() / 2];
  }
  double tokens_per_second() const { return static_cast<double>(tokens) / median_seconds(); }
  double flops_per_second() const { return cost.training.total() * tokens_per_second(); }
  /// Per step: kernels of attention and of projecting the past.
  double attention_seconds() const;
  /// Formula FLOPs of a kernel in a step; 0 when there is no formula.
  double kernel_flops(std::string_view kernel) const;
  /// Exponentials of a kernel in a step; 0 when it takes none.
  double kernel_exponentials(std::string_view kernel) const;
  /// Seconds per step that a kernel needs at least: its FLOPs, its exponentials or its tensors' bytes at the machine's
  /// rates, whichever takes longest. Tensors that the caches hold may be faster than the memory's rate.
  double kernel_floor(std::string_view kernel, const MachineLimits& limits) const;
};

/// Fills the caches, warms up, then times `steps` steps. The runtime must be fresh: the memory of its
/// largest step is reported. Throws UsageError for spans that the model
/// cannot have.
BenchResult bench_training(const BenchCase& bench, const MachineLimits& limits, Runtime& runtime, std::int64_t steps);

}  // namespace engram
