#pragma once
/// Bias, max(x, 0) and dropout in one pass: what a feed-forward sublayer has between its two products. Beside bf16
/// rows, the bias is f32.

#include "core/kernel.hpp"

namespace engram::kernels {

/// y[r, i] = max(x[r, i] + bias[i], 0) times the multiplier where element r n + i of the random stream is kept, else 0
/// (core/random_stream.hpp). x, y: [..., n]; bias: [n].
inline constinit Kernel<void(const Tensor& x, const Tensor& bias, RandomStream random, DropoutRule rule, Tensor& y)>
    relu_dropout_forward{"relu_dropout_forward"};
/// dx[r, i] = dy[r, i] times the multiplier where y[r, i] > 0, else 0: y is positive exactly where an element is kept
/// and max() hands it on, so neither the random bits nor the input are needed. dbias[i] (set or add) sum over r of
/// dx[r, i], before it is rounded to bf16; rows are summed as those of bias_backward are. y, dy, dx: [..., n]; dbias:
/// [n], or empty.
inline constinit Kernel<void(const Tensor& y, const Tensor& dy, DropoutRule rule, Tensor& dx, const Target& dbias)>
    relu_dropout_backward{"relu_dropout_backward"};

}  // namespace engram::kernels
