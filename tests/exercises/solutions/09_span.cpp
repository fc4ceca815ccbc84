#include "tests/exercises/09_span.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace engram::exercises {
namespace {

/// Where the mask is, before it is cut off at 0 and 1.
double raw_mask(double z, double ramp, std::size_t x) { return (ramp + z - static_cast<double>(x)) / ramp; }

double masked_sum(std::span<const double> scores, double z, double ramp) {
  double sum = 0;
  for (std::size_t x = 0; x < scores.size(); ++x)
    sum += std::clamp(raw_mask(z, ramp, x), 0.0, 1.0) * std::exp(scores[x]);
  return sum;
}

}  // namespace

void span_weights(std::span<const double> scores, double z, double ramp, std::span<double> weights) {
  const double sum = masked_sum(scores, z, ramp);
  for (std::size_t x = 0; x < scores.size(); ++x)
    weights[x] = std::clamp(raw_mask(z, ramp, x), 0.0, 1.0) * std::exp(scores[x]) / sum;
}

double span_gradient(std::span<const double> scores, double z, double ramp, std::span<const double> dweights) {
  const double sum = masked_sum(scores, z, ramp);
  double mean = 0;  // of dweights, with the weights
  for (std::size_t x = 0; x < scores.size(); ++x)
    mean += std::clamp(raw_mask(z, ramp, x), 0.0, 1.0) * std::exp(scores[x]) / sum * dweights[x];
  double dz = 0;
  for (std::size_t x = 0; x < scores.size(); ++x) {
    const double raw = raw_mask(z, ramp, x);
    if (raw > 0 && raw < 1) dz += std::exp(scores[x]) / sum * (dweights[x] - mean) / ramp;
  }
  return dz;
}

}  // namespace engram::exercises
