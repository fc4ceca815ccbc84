#pragma once
/// Exercise 9: docs/exercises/09_span.md.

#include <span>

namespace engram::exercises {

/// One query of a head with an adaptive span. scores[x] is that of the position x + 1 back, x = 0, 1, 2, ...; z >= 0 is
/// the span, ramp > 0 the width of its soft edge. Writes weights[x] = m(x) exp(scores[x]) / sum over all x of the same,
/// with the mask m(x) = min(1, max(0, (ramp + z - x) / ramp)).
void span_weights(std::span<const double> scores, double z, double ramp, std::span<double> weights);

/// The derivative of the loss by z, `dweights` being those by the weights. No position lies on a corner of the mask.
double span_gradient(std::span<const double> scores, double z, double ramp, std::span<const double> dweights);

}  // namespace engram::exercises
