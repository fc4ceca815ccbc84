#pragma once
/// The last linear map, softmax and cross entropy in one, for large vocabularies. Not every device has it: elsewhere
/// the same is composed of kernels of their own (autograd/functions/linear_cross_entropy.cpp).

#include <vector>

#include "core/kernel.hpp"

namespace engram {

/// The gradients of a linear map and its softmax that are wanted; each may be empty.
struct LinearCrossEntropyGradients {
  Target dx;       ///< [R, n]
  Target dweight;  ///< [V, n]
  Target dbias;    ///< [V]

  explicit operator bool() const { return dx || dweight || dbias; }
};

inline void collect_tensors(std::vector<TensorArgument>& list, const LinearCrossEntropyGradients& out) {
  for (const Target* target : {&out.dx, &out.dweight, &out.dbias})
    if (*target) collect_tensors(list, *target);
}

namespace kernels {

/// With logits = x weight^T + bias, R rows of V, at least one: row_loss[r], loss[0] as cross_entropy has them, and the
/// gradients of loss[0] (set or add). At most `rows` rows of logits at a time are in memory, or as few as one vector
/// holds. x: [R, n], weight: [V, n], bias: [V], row_weight, row_loss: [R], loss: [1], of one dtype, f32 or f64;
/// targets: [R] i32 in [0, V). A row of weight 0 has gradient exactly 0, whatever its logits. Operands of f32
/// products are rounded as the step says (Step::products), those of the bias's gradient are not.
inline constinit Kernel<void(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& targets,
                             const Tensor& row_weight, std::int64_t rows, Tensor& row_loss, Tensor& loss,
                             const LinearCrossEntropyGradients& gradients)>
    linear_cross_entropy{"linear_cross_entropy"};

}  // namespace kernels
}  // namespace engram
