#include "nn/optim/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.hpp"
#include "nn/option_limits.hpp"
#include "nn/option_rules.hpp"

namespace engram {
namespace {

/// Whether the formula contains the number of steps.
bool needs_end(Schedule::Decay decay) {
  return decay == Schedule::Decay::linear || decay == Schedule::Decay::cosine ||
         decay == Schedule::Decay::cosine_from_start;
}

}  // namespace

double Schedule::formula(std::int64_t t, double plateau_share) const {
  const auto time = static_cast<double>(t), rise = static_cast<double>(warmup);
  if (decay == Decay::inverse_root) {
    if (t > warmup) return rate / std::sqrt(time);
    return warmup == 0 ? rate : rate * time / (rise * std::sqrt(rise));
  }
  if (t < warmup) return rate * time / rise;
  if (decay == Decay::plateau) return rate * plateau_share;
  if (decay == Decay::none || steps <= warmup) return rate;
  const std::int64_t from = decay == Decay::cosine_from_start ? 0 : warmup;
  const double progress = std::clamp(static_cast<double>(t - from) / static_cast<double>(steps - from), 0.0, 1.0);
  const double remaining = decay == Decay::linear ? 1 - progress : 0.5 * (1 + std::cos(std::numbers::pi * progress));
  return rate * (final_share + (1 - final_share) * remaining);
}

double Schedule::highest() const {
  return decay == Decay::inverse_root && warmup > 0 ? rate / std::sqrt(static_cast<double>(warmup)) : rate;
}

double Schedule::at(std::int64_t update, std::int64_t finetune_after, double plateau_share) const {
  if (steps > 0 && update > finetune_after) return rate * finetune_share;
  if (clock == Clock::full_first && update == 1 && decay != Decay::inverse_root) return rate;
  return formula(clock == Clock::update ? update : update - 1, plateau_share);
}

double Schedule::at(std::int64_t update, std::int64_t finetune_after) const {
  if (decay == Decay::plateau)
    throw Error("schedule: the rate of decay = plateau depends on the validations, got an update number alone");
  return at(update, finetune_after, 1);
}

void Schedule::check() const {
  using namespace option_limits;
  constexpr OptionRules rules("schedule: ");
  rules.within("rate", rate, kSmallest, kLargest);
  rules.within("warmup", warmup, 0, kSteps);
  rules.within("steps", steps, 0, kSteps);
  rules.require(final_share >= 0 && final_share <= 1, "final_share", "in [0, 1]", final_share);
  rules.within("plateau_validations", plateau_validations, 1, kSteps);
  rules.within("plateau_margin", plateau_margin, 0, kLargest);
  rules.require(plateau_factor > 0 && plateau_factor < 1, "plateau_factor", "in (0, 1)", plateau_factor);
  rules.within("plateau_patience", plateau_patience, 0, kSteps);
  if (needs_end(decay) && steps <= warmup)
    throw UsageError(text("schedule: a decay that ends at steps must have more steps than its warmup, got steps ",
                          steps, " and warmup ", warmup, "\n  a short trial of these steps: --set schedule.warmup=",
                          steps / 10, "; a whole run: more schedule.steps; or schedule.decay=none"));
  if (finetune == Finetune::plateau && needs_end(decay))
    throw UsageError(
        "schedule: a decay must know where it ends; finetune = plateau takes decay = none, inverse_root or plateau");
  rules.require(finetune_share >= 0 && finetune_share <= 1, "finetune_share", "in [0, 1]", finetune_share);
}

}  // namespace engram
