#pragma once
/// Softmax over the last axis.

#include "core/kernel.hpp"

namespace engram::kernels {

/// y[r, :] = softmax(x[r, :]). x, y: [..., n], same shape and dtype. Where the largest element of a row is infinite,
/// the places that hold it share the weight equally: those of +infinity, or all when all are -infinity. A NaN makes its
/// row NaN.
inline constinit Kernel<void(const Tensor& x, Tensor& y)> softmax_forward{"softmax_forward"};
/// dx[r, i] (set or add) y[r, i] (dy[r, i] - sum_j dy[r, j] y[r, j]).
inline constinit Kernel<void(const Tensor& y, const Tensor& dy, const Target& dx)> softmax_backward{"softmax_backward"};

}  // namespace engram::kernels
