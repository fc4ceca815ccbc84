#pragma once
/// The learning rate as a pure function of the step.

#include <cstdint>

#include "core/names.hpp"

namespace engram {

struct Schedule {
  /// What follows the warm-up; the formulas are at `formula`.
  enum class Decay : std::uint8_t { none, linear, cosine, cosine_from_start, inverse_root, plateau };
  /// The time t that update number k, counted from 1, puts into the formula.
  enum class Clock : std::uint8_t {
    update,     ///< t = k: the first update has rate / warmup, and update number `steps` the last value of a decay
    completed,  ///< t = k - 1, the updates completed before: a warm-up begins at 0, as in Transformer-XL's TensorFlow
                ///< form
    full_first  ///< the same, but update 1 has the full rate in spite of a warm-up, as in its PyTorch form, which sets
                ///< the rate after every update only. Not with inverse_root, which that form begins at its formula
  };
  /// What fine-tuning begins after: `steps`, or a plateau of the validation loss, and `steps` at the latest.
  enum class Finetune : std::uint8_t { fixed, plateau };

  double rate = 0;              ///< the highest learning rate; inverse_root: what 1/sqrt(t) is multiplied by
  std::int64_t warmup = 0;      ///< steps over which it rises linearly from rate / warmup
  Decay decay = Decay::none;    ///< from the end of the warm-up to `steps`, down to rate * final_share
  Clock clock = Clock::update;  ///< which t an update has
  double final_share = 0;       ///< in [0, 1]; not of inverse_root
  std::int64_t steps = 0;       ///< length of the run before fine-tuning
  double finetune_share = 0.1;  ///< in fine-tuning: rate * finetune_share, without another warm-up
  Finetune finetune = Finetune::fixed;
  std::int64_t plateau_validations = 10;  ///< validations in a row without an improvement that are a plateau
  double plateau_margin = 0.001;          ///< bits per token that an improvement has at least
  double plateau_factor = 0.5;            ///< decay = plateau: in (0, 1), what the rate is multiplied by
  std::int64_t plateau_patience = 0;      ///< decay = plateau: validations without an improvement that it waits through

  /// The rate of update number `update`, counted from 1: the formula at the time of the clock; in fine-tuning from
  /// update finetune_after + 1 on. `plateau_share` is PlateauDecay::share(), for decay = plateau.
  double at(std::int64_t update, std::int64_t finetune_after, double plateau_share) const;
  /// The rate without a share. Throws Error for decay = plateau, which is no function of the step alone.
  double at(std::int64_t update, std::int64_t finetune_after) const;
  /// The rate with fine-tuning after `steps`.
  double at(std::int64_t update) const { return at(update, steps); }
  /// What no update's rate is above: `rate`, or the peak of inverse_root.
  double highest() const;

  /// The rate at time t >= 0, with lr = rate, w = warmup, T = steps, a = final_share. While t < w it is lr t / w, but
  /// for inverse_root; then
  ///   none               lr
  ///   linear             lr [a + (1 - a) (1 - (t - w) / (T - w))]
  ///   cosine             lr [a + (1 - a) (1 + cos(pi (t - w) / (T - w))) / 2]: Transformer-XL's TensorFlow form
  ///   cosine_from_start  lr [a + (1 - a) (1 + cos(pi t / T)) / 2]: its PyTorch form. The cosine runs from 0 on, so
  ///                      after a warm-up the rate begins below lr
  ///   inverse_root       lr / sqrt(t) for t > w, lr t / w^1.5 up to there, lr at t = w = 0; highest: lr / sqrt(w)
  ///   plateau            lr plateau_share
  /// and the last value of linear and cosines beyond T. Source: [transformer-xl 4.3], for all but
  /// linear.
  double formula(std::int64_t t, double plateau_share = 1) const;

  /// Throws UsageError naming the option and its value; among others for linear and cosines when T is not above w.
  void check() const;
};

constexpr auto names_of(Schedule::Decay) {
  return std::to_array<Named<Schedule::Decay>>({{Schedule::Decay::none, "none"},
                                                {Schedule::Decay::linear, "linear"},
                                                {Schedule::Decay::cosine, "cosine"},
                                                {Schedule::Decay::cosine_from_start, "cosine_from_start"},
                                                {Schedule::Decay::inverse_root, "inverse_root"},
                                                {Schedule::Decay::plateau, "plateau"}});
}
constexpr auto names_of(Schedule::Clock) {
  return std::to_array<Named<Schedule::Clock>>({{Schedule::Clock::update, "update"},
                                                {Schedule::Clock::completed, "completed"},
                                                {Schedule::Clock::full_first, "full_first"}});
}
constexpr auto names_of(Schedule::Finetune) {
  return std::to_array<Named<Schedule::Finetune>>(
      {{Schedule::Finetune::fixed, "fixed"}, {Schedule::Finetune::plateau, "plateau"}});
}

}  // namespace engram
