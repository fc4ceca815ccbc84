#pragma once
/// Constant fill.

#include "core/kernel.hpp"

namespace engram::kernels {

/// y[i] = value. y: any shape, any dtype.
inline constinit Kernel<void(Tensor& y, double value)> fill{"fill"};

}  // namespace engram::kernels
