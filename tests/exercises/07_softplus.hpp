#pragma once
/// Exercise 7: docs/exercises/07_softplus.md.

#include "autograd/tape.hpp"
#include "autograd/variable.hpp"
#include "core/kernel.hpp"
#include "core/target.hpp"

namespace engram::kernels {

/// y[i] = log(1 + exp(x[i])). Same shape and dtype, f32 or f64.
inline constinit Kernel<void(const Tensor& x, Tensor& y)> softplus_forward{"softplus_forward"};
/// dx[i] (set or add) dy[i] / (1 + exp(-x[i])).
inline constinit Kernel<void(const Tensor& x, const Tensor& dy, const Target& dx)> softplus_backward{
    "softplus_backward"};

}  // namespace engram::kernels

namespace engram::exercises {

/// y = log(1 + exp(x)), element by element, for x of any size: a smooth form of max(0, x).
Variable softplus(const Variable& x);

}  // namespace engram::exercises
