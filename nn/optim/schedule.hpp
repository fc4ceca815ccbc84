#pragma once
/// The learning rate as a pure function of the step.

#include <cstdint>

namespace engram {

struct Schedule {
  enum class Decay : std::uint8_t { none, linear, cosine };
  /// What fine-tuning begins after: `steps`, or a plateau of the validation loss, and `steps` at the latest.
  enum class Finetune : std::uint8_t { fixed, plateau };

  double rate = 0;              ///< the highest learning rate
  std::int64_t warmup = 0;      ///< steps over which it rises linearly from rate / warmup
  Decay decay = Decay::none;    ///< from the end of the warm-up to `steps`, down to rate * final_share
  double final_share = 0;       ///< in [0, 1]
  std::int64_t steps = 0;       ///< length of the run before fine-tuning
  double finetune_share = 0.1;  ///< in fine-tuning: rate * finetune_share, without another warm-up
  Finetune finetune = Finetune::fixed;
  std::int64_t plateau_validations = 10;  ///< validations in a row without an improvement that are a plateau
  double plateau_margin = 0.001;          ///< bits per token that an improvement has at least

  /// The rate of update number `update`, counted from 1: rate min(1, update / warmup), then the decay; in fine-tuning
  /// from update finetune_after + 1 on.
  double at(std::int64_t update, std::int64_t finetune_after) const;
  /// The same with fine-tuning after `steps`.
  double at(std::int64_t update) const { return at(update, steps); }
  /// Throws UsageError naming the option and its value.
  void check() const;
};

}  // namespace engram
