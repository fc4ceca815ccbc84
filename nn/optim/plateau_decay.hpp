#pragma once
/// Lowers the learning rate whenever the validation loss stops falling: `dev_perf` of Transformer-XL
/// ([transformer-xl 4.3]).

#include <cstdint>
#include <span>
#include <vector>

#include "nn/optim/schedule.hpp"

namespace engram {

/// After more than `plateau_patience` validations in a row whose loss is not below 1 - 1e-4 times the best, the share
/// of the rate is multiplied by `plateau_factor`, never to below `final_share`, and the wait begins anew; the best
/// stays.
class PlateauDecay {
 public:
  static constexpr double kMargin = 1e-4;  ///< of the best loss, by which a better one is lower

  /// The schedule's options must have passed their check.
  explicit PlateauDecay(const Schedule& schedule);

  /// Takes the loss of a validation (any unit, above 0). Validations of the warm-up are not to be given: the rate that
  /// they judge is not yet the one that decays. What is not a number counts as no improvement.
  void add(double loss);
  /// What the rate is multiplied by, for Schedule::at.
  double share() const { return share_; }

  /// What a resumed run needs: share, validations waited, and the best loss, if any.
  std::vector<double> state() const;
  /// Throws UsageError for anything but what state() returned.
  void restore(std::span<const double> state);

 private:
  double factor_, floor_;
  std::int64_t patience_;
  double share_ = 1;
  std::int64_t waited_ = 0;
  double best_;  // infinite before the first
};

}  // namespace engram
