#pragma once
/// The numbers of a step of Adam that are the same for all elements, which every device computes in f64. m and v are
/// the moments after the step, t counts steps from 1.

#include <cmath>
#include <cstdint>

#include "core/host_device.hpp"
#include "core/names.hpp"

namespace engram {

/// Which root of the second moment epsilon is added to. The forms differ where it counts beside the root: the second
/// one adds epsilon / sqrt(1 - b2^t) to the corrected root, at b2 = 0.999 31.6 epsilon in the first step.
enum class EpsilonAt : std::uint8_t {
  corrected,   ///< lr / (1 - b1^t) m / (sqrt(v / (1 - b2^t)) + epsilon): Kingma, Ba (2015), algorithm 1
  uncorrected  ///< lr sqrt(1 - b2^t) / (1 - b1^t) m / (sqrt(v) + epsilon): the end of their section 2
};
constexpr auto names_of(EpsilonAt) {
  return std::to_array<Named<EpsilonAt>>(
      {{EpsilonAt::corrected, "corrected"}, {EpsilonAt::uncorrected, "uncorrected"}});
}

/// What m / (sqrt(v) + epsilon) is multiplied by in the form `uncorrected`.
ENGRAM_HD inline double adam_step_size(double rate, double beta1, double beta2, std::int64_t t) {
  const auto steps = static_cast<double>(t);
  return rate * std::sqrt(1 - std::pow(beta2, steps)) / (1 - std::pow(beta1, steps));
}

/// What is added to sqrt(v) beside adam_step_size().
ENGRAM_HD inline double adam_epsilon(EpsilonAt at, double epsilon, double beta2, std::int64_t t) {
  return at == EpsilonAt::uncorrected ? epsilon : epsilon * std::sqrt(1 - std::pow(beta2, static_cast<double>(t)));
}

/// The step of Adam with epsilon as it is given: p loses size m / (sqrt(v) root_scale + epsilon).
struct AdamStep {
  double size = 0, root_scale = 1;

  ENGRAM_HD static AdamStep of(EpsilonAt at, double rate, double beta1, double beta2, std::int64_t t) {
    if (at == EpsilonAt::uncorrected) return {adam_step_size(rate, beta1, beta2, t), 1};
    const auto steps = static_cast<double>(t);
    return {rate / (1 - std::pow(beta1, steps)), 1 / std::sqrt(1 - std::pow(beta2, steps))};
  }
};

}  // namespace engram
