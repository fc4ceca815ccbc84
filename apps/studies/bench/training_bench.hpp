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

/// What several ranks have of each other, in a step, as one of them sees it.
struct RankBench {
  int ranks = 1;
  std::int64_t bytes_sent = 0;  ///< by this rank
  double exchange_seconds = 0;  ///< in which gradients were on their way
  double exchange_waited = 0;   ///< of those, in which nothing else was done
  double gather_seconds = 0;    ///< of updates, for values, sums of squares and gradients of rows; all of it waited for
  double alone_seconds = 0;     ///< median of a step of one rank, while the others wait; 0: not measured

  /// The share of the exchange that backward hid.
  double hidden() const { return exchange_seconds > 0 ? 1 - exchange_waited / exchange_seconds : 1; }
};

struct BenchResult {
  StepCost cost;                ///< of what this rank computes
  std::int64_t tokens = 0;      ///< of a step
  std::int64_t own_tokens = 0;  ///< of those, computed by this rank
  std::vector<double> seconds;  ///< of every timed step, ascending
  /// Seconds of steps with kernels handed over one by one, where a device can also replay whole steps; else empty.
  std::vector<double> seconds_one_by_one;
  double processor_seconds = 0;  ///< of all threads of the process, mean of the timed steps
  double least_seconds = 0;      ///< of a step, by the machine's limits
  std::int64_t parameters = 0;
  /// In use for values, gradients, optimiser state, norms, and other ranks' gradients.
  std::size_t parameter_bytes = 0;
  std::size_t arena_bytes = 0;     ///< most that a step had in use at once
  std::size_t resident_bytes = 0;  ///< most that the process had, 0 when the system does not say
  std::size_t device_bytes = 0;    ///< what the device had in use at the end, 0 where that is the process's
  KernelTimes kernels;             ///< of as many steps together
  std::int64_t launches = 0;       ///< of a step, in kernels and outside (core/launch_count.hpp); 0: nobody counts
  double observed_seconds = 0;     ///< of those steps, which are slower where a device works behind the host
  RankBench rank_bench;

  explicit BenchResult(Backend& backend) : kernels(backend) {}
  double median_seconds() const { return seconds[seconds.size() / 2]; }
  /// 0 where there are none.
  double median_one_by_one() const {
    return seconds_one_by_one.empty() ? 0 : seconds_one_by_one[seconds_one_by_one.size() / 2];
  }
  double tokens_per_second() const { return static_cast<double>(tokens) / median_seconds(); }
  /// Of this rank.
  double flops_per_second() const { return cost.training.total() * static_cast<double>(own_tokens) / median_seconds(); }
  /// Tokens a second of all ranks, against so many times those of one; 0 where that was not measured.
  double efficiency() const { return rank_bench.alone_seconds / (rank_bench.ranks * median_seconds()); }
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
/// With several ranks all of them call it, and their pieces of a batch must be equal ones.
BenchResult bench_training(const BenchCase& bench, const MachineLimits& limits, Runtime& runtime, std::int64_t steps);

/// Where and with what ranks are timed.
struct RankBenchSetting {
  Device device;
  int threads = 0;           ///< of each rank, as Runtime has it
  std::int64_t steps = 10;   ///< that are timed
  double alone_seconds = 0;  ///< of a step of one rank, as it was measured before; 0: rank 0 measures it
};
/// The same of several ranks, after rank 0 has timed the config as the only one, with as many threads, while the others
/// wait: what that took is in rank_bench. The batch is cut as training cuts it for so many ranks (split_for_ranks()).
BenchResult bench_ranks(BenchCase bench, const MachineLimits& limits, const RankBenchSetting& setting,
                        Communicator& ranks);

}  // namespace engram
