#include "tests/reference/optimizers.hpp"

#include <algorithm>
#include <cmath>

namespace engram::reference {
namespace {

void require_one_shape(const Array64& value, const Array64& gradient, const Array64& state) {
  require(value.shape == gradient.shape && value.shape == state.shape, "update: one shape for value, gradient, state");
}

}  // namespace

void adagrad(Array64& value, const Array64& gradient, Array64& accumulator, const AdagradOptions& options) {
  require_one_shape(value, gradient, accumulator);
  const double norm = global_norm({gradient});
  const double shrink = options.clip > 0 && norm > options.clip ? options.clip / (norm + 1e-10) : 1.0;
  const double rate = options.mode == Clip::rate ? options.rate * shrink : options.rate;
  const double factor = options.mode == Clip::gradient ? shrink : 1.0;
  for (std::size_t k = 0; k < value.data.size(); ++k) {
    const double g = factor * gradient.data[k];
    accumulator.data[k] += g * g;
    value.data[k] -= rate * g / (std::sqrt(accumulator.data[k]) + 1e-10);
  }
}

void adam(Array64& value, const Array64& gradient, Array64& first, Array64& second, std::int64_t step,
          const AdamOptions& options) {
  require_one_shape(value, gradient, first);
  require_one_shape(value, gradient, second);
  require(step >= 1, "adam: the first step is 1");
  const double correction1 = 1 - std::pow(options.beta1, static_cast<double>(step));
  const double correction2 = 1 - std::pow(options.beta2, static_cast<double>(step));
  for (std::size_t k = 0; k < value.data.size(); ++k) {
    const double g = gradient.data[k];
    first.data[k] = options.beta1 * first.data[k] + (1 - options.beta1) * g;
    second.data[k] = options.beta2 * second.data[k] + (1 - options.beta2) * g * g;
    const double mean = first.data[k] / correction1;
    const double root = options.corrected_root ? std::sqrt(second.data[k] / correction2) + options.epsilon
                                               : (std::sqrt(second.data[k]) + options.epsilon) / std::sqrt(correction2);
    value.data[k] -= options.rate * mean / root;
  }
}

void sgd(Array64& value, const Array64& gradient, Array64& velocity, double rate, double momentum) {
  require_one_shape(value, gradient, velocity);
  for (std::size_t k = 0; k < value.data.size(); ++k) {
    velocity.data[k] = momentum * velocity.data[k] + gradient.data[k];
    value.data[k] -= rate * velocity.data[k];
  }
}

void nesterov(Array64& value, Array64& point, const Array64& gradient, Array64& speed, double rate, double momentum) {
  require_one_shape(value, gradient, speed);
  for (std::size_t k = 0; k < value.data.size(); ++k) {
    speed.data[k] = momentum * speed.data[k] - rate * gradient.data[k];
    point.data[k] += speed.data[k];
    value.data[k] = point.data[k] + momentum * speed.data[k];
  }
}

double global_norm(const std::vector<Array64>& gradients) {
  double squares = 0;
  for (const Array64& gradient : gradients)
    for (const double g : gradient.data) squares += g * g;
  return std::sqrt(squares);
}

double clip_global(std::vector<Array64>& gradients, double limit) {
  const double norm = global_norm(gradients);
  if (limit > 0) {
    const double factor = std::min(1.0, limit / (norm + 1e-6));
    for (Array64& gradient : gradients)
      for (double& g : gradient.data) g *= factor;
  }
  return norm;
}

double warmup_rate(double rate, std::int64_t step, std::int64_t warmup) {
  if (warmup == 0) return rate;
  return rate * std::min(1.0, static_cast<double>(step) / static_cast<double>(warmup));
}

}  // namespace engram::reference
