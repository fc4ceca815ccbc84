#pragma once
/// Constant fill.

#include "core/kernel.hpp"

namespace engram::kernels {

/// y[i] = value. y: any shape, any dtype.
inline constinit Kernel<void(Tensor& y, double value)> fill{"fill"};

/// Zeros where the target says set, so that all there is to do is add.
inline void clear_if_set(Step& step, const Target& target) {
  if (!target || target.write == Write::add) return;
  Tensor zeros = target.tensor;
  fill(step, zeros, 0.0);
}

}  // namespace engram::kernels
