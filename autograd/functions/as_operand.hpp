#pragma once

#include "core/kernels/copy.hpp"

namespace engram {

/// A gradient as an operand of the products that `x` goes into: that of f32 sums of bf16 products is rounded to bf16.
inline Tensor as_operand(Step& step, const Tensor& gradient, const Tensor& x) {
  if (gradient.dtype() == x.dtype()) return gradient;
  Tensor rounded = step.empty(gradient.shape(), x.dtype());
  kernels::convert(step, gradient, rounded);
  return rounded;
}

}  // namespace engram
