#pragma once
/// Normalisation of rows by their length. Zhang, Sennrich: "Root Mean Square Layer Normalization" (2019), eq. 4.
/// Beside bf16 rows, gain, its gradient and the reciprocals are f32.

#include "core/kernel.hpp"

namespace engram::kernels {

/// y = gain x / sqrt(sum(x^2) / divisor + epsilon), the sum over the last axis. divisor n: divided by the root mean
/// square; divisor 1 and epsilon 0: of length 1. A root of zero divides nothing: y is zero then, and so is its
/// gradient. x, y: [..., n]; gain: [n], or empty: 1; reciprocal: [rows], one over the root, which the backward pass
/// needs.
inline constinit Kernel<void(const Tensor& x, const Tensor& gain, double divisor, double epsilon, Tensor& y,
                             Tensor& reciprocal)>
    rms_norm_forward{"rms_norm_forward"};

/// Gradients of the above. With s = x reciprocal and g = gain dy:
///   dx = (g - s sum(g s) / divisor) reciprocal;  dgain = sum over rows of dy s (chunks that depend on their count
///   only)
/// Either of dx, dgain may be empty: not wanted.
inline constinit Kernel<void(const Tensor& x, const Tensor& gain, double divisor, const Tensor& reciprocal,
                             const Tensor& dy, const Target& dx, const Target& dgain)>
    rms_norm_backward{"rms_norm_backward"};

}  // namespace engram::kernels
