#include "nn/optim/plateau_decay.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.hpp"

namespace engram {

PlateauDecay::PlateauDecay(const Schedule& schedule)
    : factor_(schedule.plateau_factor),
      floor_(schedule.final_share),
      patience_(schedule.plateau_patience),
      best_(std::numeric_limits<double>::infinity()) {}

void PlateauDecay::add(double loss) {
  if (loss < best_ * (1 - kMargin)) {
    best_ = loss;
    waited_ = 0;
  } else if (++waited_ > patience_) {
    share_ = std::max(share_ * factor_, floor_);
    waited_ = 0;
  }
}

std::vector<double> PlateauDecay::state() const {
  std::vector<double> state{share_, static_cast<double>(waited_)};
  if (std::isfinite(best_)) state.push_back(best_);  // files hold finite numbers only
  return state;
}

void PlateauDecay::restore(std::span<const double> state) {
  const bool valid = (state.size() == 2 || state.size() == 3) &&
                     std::ranges::all_of(state, [](double number) { return std::isfinite(number); }) && state[0] >= 0 &&
                     state[0] <= 1 && state[1] >= 0 && state[1] <= 0x1p53 && state[1] == std::floor(state[1]);
  if (!valid)
    throw UsageError(
        text("plateau decay: a saved state must be a share in [0, 1], a number of validations and the best "
             "loss, got ",
             state.size(), " numbers", state.empty() ? "" : text(" beginning with ", state[0])));
  share_ = state[0];
  waited_ = static_cast<std::int64_t>(state[1]);
  best_ = state.size() == 3 ? state[2] : std::numeric_limits<double>::infinity();
}

}  // namespace engram
