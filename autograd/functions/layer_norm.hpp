#pragma once
/// Layer normalisation over the last axis, alone or of a residual sum. Ba, Kiros, Hinton (2016), biased variance.

#include "autograd/variable.hpp"

namespace engram {

/// gain (x - mean) / sqrt(variance + epsilon) + bias. x: [..., n], n >= 1; gain, bias: [n], f32 beside bf16.
/// Keeps x and two numbers per row. Throws ShapeError or DTypeError.
Variable layer_norm(const Variable& x, const Variable& gain, const Variable& bias, double epsilon = 1e-5);

struct ResidualNorm {
  Variable sum;         ///< x + residual
  Variable normalised;  ///< layer_norm of the sum
};
/// Layer norm of x + residual (equal shapes) in one pass. Keeps the sum and two numbers per row.
ResidualNorm layer_norm_residual(const Variable& x, const Variable& residual, const Variable& gain,
                                 const Variable& bias, double epsilon = 1e-5);

}  // namespace engram
