#pragma once
/// Update rules and the rate schedule of [all-attention 5.1 to 5.3], for one tensor at a time. Surprising: the
/// default Adagrad shrinks the step of a tensor whose gradient is too long, not the gradient, and its accumulator sees
/// the raw gradient.

#include <cstdint>
#include <vector>

#include "tests/reference/array64.hpp"

namespace engram::reference {

enum class Clip {
  rate,      // the released code: the tensor's step size is multiplied by clip / norm
  gradient,  // the usual way: the gradient is, and the accumulator sees the result
};

struct AdagradOptions {
  double rate;
  double clip = 0;  // longest norm of the tensor's gradient; 0: no clipping
  Clip mode = Clip::rate;
};
/// One step: value and accumulator (starts at 0) are updated in place; all three have one shape.
void adagrad(Array64& value, const Array64& gradient, Array64& accumulator, const AdagradOptions& options);

struct AdamOptions {
  double rate;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  bool corrected_root = true;  // epsilon is added to the bias-corrected root; false: to sqrt(v)
};
/// One bias-corrected step, `step` = 1 at the first; first and second are the moments, starting at 0.
void adam(Array64& value, const Array64& gradient, Array64& first, Array64& second, std::int64_t step,
          const AdamOptions& options);

/// velocity = momentum * velocity + gradient; value -= rate * velocity. Velocity starts at 0.
void sgd(Array64& value, const Array64& gradient, Array64& velocity, double rate, double momentum);
/// Nesterov's accelerated gradient as Sutskever et al. (2013) have it, with their two points kept apart: `point`, at
/// which they stand, and `value` = point + momentum * speed, ahead of it, where the gradient is taken.
///   speed = momentum * speed - rate * gradient;  point += speed;  value = point + momentum * speed
/// Speed starts at 0, point at value. Engram keeps value and velocity = -speed / rate, so this is the same while the
/// rate stays.
void nesterov(Array64& value, Array64& point, const Array64& gradient, Array64& speed, double rate, double momentum);

/// Euclidean norm over all tensors together.
double global_norm(const std::vector<Array64>& gradients);
/// Multiplies all gradients by min(1, limit / (norm + 1e-6)); limit 0 leaves them alone. Returns the norm before.
double clip_global(std::vector<Array64>& gradients, double limit);

/// rate * min(1, step / warmup), `step` = 1 at the first update; warmup 0: the rate itself.
double warmup_rate(double rate, std::int64_t step, std::int64_t warmup);

}  // namespace engram::reference
