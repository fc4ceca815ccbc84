#pragma once
/// Gradients of activations in bf16 that are sums over many rows: added up in f32, rounded once.

#include "core/kernels/copy.hpp"

namespace engram {

/// Calls add_up(target) with the gradient's target, or, where that is bf16, with sums in f32 that are rounded into it.
template <class AddUp>
void add_up_rounded(Step& step, const Target& gradient, const AddUp& add_up) {
  if (gradient.tensor.dtype() != DType::bf16) return add_up(gradient);
  const Target sums{step.empty(gradient.tensor.shape(), DType::f32), Write::set};
  add_up(sums);
  const bool adds = gradient.write == Write::add;
  Tensor rounded = adds ? step.empty(gradient.tensor.shape(), DType::bf16) : gradient.tensor;
  kernels::convert(step, sums.tensor, rounded);
  if (adds) kernels::accumulate(step, rounded, 1.0, gradient);
}

}  // namespace engram
