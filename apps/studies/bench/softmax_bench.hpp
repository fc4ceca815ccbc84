#pragma once
/// The two ends of a word model alone, timed: vectors of the words in, losses of the next words out, forward and
/// backward, without the layers between. Adaptive input and softmax against the floor that its matrix products set,
/// and beside it one table and one softmax over the whole vocabulary.

#include <cstdint>
#include <vector>

#include "apps/run/model/runtime.hpp"
#include "apps/studies/bench/kernel_times.hpp"
#include "apps/studies/bench/machine_limits.hpp"
#include "nn/models/all_attention_options.hpp"

namespace engram {

struct SoftmaxBench {
  AllAttentionOptions model;     ///< vocabulary, width and how it is cut into clusters; the rest is not used
  std::int64_t tokens = 0;       ///< of a step
  std::int64_t full_tokens = 0;  ///< of a step with the softmax over the whole vocabulary, whose logits are many
};

struct SoftmaxRun {
  std::int64_t tokens = 0;
  std::vector<double> seconds;  ///< of every step, ascending
  /// Of every step, ascending: its time over that of its products, at the rate of a large product that was timed right
  /// before and right after it. Where other programs use the machine as well, this says more than the limits, which
  /// were measured at another time.
  std::vector<double> times_floor;
  double flops = 0;                    ///< per token: products, forward and backward
  std::vector<double> cluster_shares;  ///< of the targets; empty without clusters
  KernelTimes kernels;                 ///< of as many steps together

  explicit SoftmaxRun(Backend& backend) : kernels(backend) {}
  double median_seconds() const { return seconds[seconds.size() / 2]; }
  double median_times_floor() const { return times_floor[times_floor.size() / 2]; }
  double seconds_per_1000() const { return median_seconds() / static_cast<double>(tokens) * 1000; }
  double floor_seconds(const MachineLimits& limits) const {
    return flops * static_cast<double>(tokens) / limits.flops_per_second;
  }
};

struct SoftmaxResult {
  SoftmaxRun adaptive, full;
};

/// Times `steps` steps of both. Words are drawn by the frequencies of cluster_shares.hpp with a fixed seed.
SoftmaxResult bench_softmax(const SoftmaxBench& bench, Runtime& runtime, std::int64_t steps);

}  // namespace engram
