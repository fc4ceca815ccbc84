#pragma once
/// Inverted dropout. Srivastava et al., JMLR 15 (2014), with the kept values scaled up during training.

#include "core/kernel.hpp"

namespace engram::kernels {

/// y[i] (set or add) x[i] * multiplier when element i is kept, else 0 (core/random_stream.hpp). Its own derivative:
/// the backward pass calls it on the gradient with the same stream, so no mask is stored.
inline constinit Kernel<void(const Tensor& x, RandomStream random, DropoutRule rule, Tensor& y, Write write)> dropout{
    "dropout"};

}  // namespace engram::kernels
