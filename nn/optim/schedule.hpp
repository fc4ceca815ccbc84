#pragma once
/// The learning rate as a pure function of the step.

#include <cstdint>

namespace engram {

struct Schedule {
  enum class Decay : std::uint8_t { none, linear, cosine };

  double rate = 0;              ///< the highest learning rate
  std::int64_t warmup = 0;      ///< steps over which it rises linearly from rate / warmup
  Decay decay = Decay::none;    ///< from the end of the warm-up to `steps`, down to rate * final_share
  double final_share = 0;       ///< in [0, 1]
  std::int64_t steps = 0;       ///< length of the run before fine-tuning
  double finetune_share = 0.1;  ///< after `steps`: rate * finetune_share, without another warm-up

  /// The rate of update number `update`, counted from 1: rate min(1, update / warmup), then the decay.
  double at(std::int64_t update) const;
  /// Throws UsageError naming the option and its value.
  void check() const;
};

}  // namespace engram
