#include "apps/training/divergence.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace engram {

void DivergenceWatch::add(double nll) {
  sum_ = kDecay * sum_ + nll;
  weight_ = kDecay * weight_ + 1;
  ++steps_;
  // A mean over a few steps may be low by chance, and would be the best for ever.
  constexpr std::int64_t kSettled = 100;
  if (steps_ < kSettled) return;
  if (best_ == 0 || mean() < best_) best_ = mean();
  above_ = mean() > kLimit * best_ ? above_ + 1 : 0;
}

nlohmann::json DivergenceWatch::state() const {
  return {{"sum", sum_}, {"weight", weight_}, {"best", best_}, {"steps", steps_}, {"above", above_}};
}

void DivergenceWatch::restore(const nlohmann::json& state) {
  try {
    state.at("sum").get_to(sum_);
    state.at("weight").get_to(weight_);
    state.at("best").get_to(best_);
    state.at("steps").get_to(steps_);
    state.at("above").get_to(above_);
  } catch (const nlohmann::json::exception& error) {
    throw UsageError(text("divergence watch: a saved state must have its five numbers, got ", state.dump()));
  }
}

}  // namespace engram
