#pragma once
/// Element-wise sum.

#include "core/kernel.hpp"

namespace engram::kernels {

/// y[i] = a[i] + b[i]. Same shape and dtype.
inline constinit Kernel<void(const Tensor& a, const Tensor& b, Tensor& y)> add{"add"};

}  // namespace engram::kernels
