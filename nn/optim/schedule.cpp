#include "nn/optim/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.hpp"

namespace engram {

double Schedule::at(std::int64_t update, std::int64_t finetune_after) const {
  if (steps > 0 && update > finetune_after) return rate * finetune_share;
  if (update < warmup) return rate * static_cast<double>(update) / static_cast<double>(warmup);
  if (decay == Decay::none || steps <= warmup) return rate;
  const double progress =
      std::clamp(static_cast<double>(update - warmup) / static_cast<double>(steps - warmup), 0.0, 1.0);
  const double remaining = decay == Decay::linear ? 1 - progress : 0.5 * (1 + std::cos(std::numbers::pi * progress));
  return rate * (final_share + (1 - final_share) * remaining);
}

void Schedule::check() const {
  const auto require = [](bool valid, std::string_view option, std::string_view rule, auto value) {
    if (!valid) throw UsageError(text("schedule: ", option, " must be ", rule, ", got ", value));
  };
  require(rate > 0 && std::isfinite(rate), "rate", "above 0", rate);
  require(warmup >= 0, "warmup", "at least 0 steps", warmup);
  require(steps >= 0, "steps", "at least 0", steps);
  require(final_share >= 0 && final_share <= 1, "final_share", "in [0, 1]", final_share);
  require(plateau_validations >= 1, "plateau_validations", "at least 1", plateau_validations);
  require(plateau_margin >= 0, "plateau_margin", "at least 0 bits per token", plateau_margin);
  if (finetune == Finetune::plateau && decay != Decay::none)
    throw UsageError("schedule: a decay must know where it ends; finetune = plateau takes decay = none");
  require(finetune_share >= 0 && finetune_share <= 1, "finetune_share", "in [0, 1]", finetune_share);
}

}  // namespace engram
