#include "apps/run/training/divergence.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/files/json.hpp"
#include "core/files/json_integer.hpp"

namespace engram {

DivergenceWatch::DivergenceWatch(std::int64_t vocabulary) : guess_(std::log(static_cast<double>(vocabulary))) {}

bool DivergenceWatch::is_hopeless(double nll) const { return !(nll <= kHopeless * std::max(guess_, best_)); }

void DivergenceWatch::add(double nll) {
  sum_ = kDecay * sum_ + nll;
  weight_ = kDecay * weight_ + 1;
  if (best_ == 0 || mean() < best_) best_ = mean();
  above_ = mean() > kLimit * std::max(best_, kByHeart * guess_) ? above_ + 1 : 0;
}

nlohmann::json DivergenceWatch::state() const {
  return {{"sum", sum_}, {"weight", weight_}, {"best", best_}, {"above", above_}};
}

void DivergenceWatch::restore(const nlohmann::json& state) {
  try {
    state.at("sum").get_to(sum_);
    state.at("weight").get_to(weight_);
    state.at("best").get_to(best_);
    above_ = integer_of<std::int64_t>(state.at("above"));
  } catch (const nlohmann::json::exception& error) {
    throw UsageError(text("divergence watch: a saved state must have its four numbers, got ", state.dump()));
  }
}

}  // namespace engram
