#pragma once
/// Normalisation of the last axis by its length, without a mean.

#include "autograd/variable.hpp"

namespace engram {

/// gain x / sqrt(mean(x^2) + epsilon): root mean square layer normalisation, Zhang and Sennrich (2019), eq. 4. x:
/// [..., n], n >= 1; gain: [n], f32 beside bf16, or absent: 1; epsilon: at least 0. Keeps x and a number per row.
/// Throws ShapeError or DTypeError.
Variable rms_norm(const Variable& x, const Variable& gain = {}, double epsilon = 1e-5);

/// x / |x|: rows of Euclidean length 1. A row of zeros, or one whose squares are too small or too large for its dtype
/// (f32: |x| below 1e-22 or above 1e19), becomes one of zeros with a gradient of zeros. The same kernel, with another
/// divisor and without epsilon. Throws as rms_norm does.
Variable l2_norm(const Variable& x);

}  // namespace engram
