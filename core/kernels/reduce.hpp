#pragma once
/// Sums to a scalar, in an order that depends on the element count only.

#include "core/kernel.hpp"

namespace engram::kernels {

/// y[0] = factor * sum of x, accumulated in double. x: any shape, f32, f64 or bf16; y: one element of the
/// same dtype, f32 for bf16.
inline constinit Kernel<void(const Tensor& x, double factor, Tensor& y)> sum_forward{"sum_forward"};
/// dx[i] (set or add) factor * dy[0].
inline constinit Kernel<void(const Tensor& dy, double factor, const Target& dx)> sum_backward{"sum_backward"};

}  // namespace engram::kernels
