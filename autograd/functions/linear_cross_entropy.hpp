#pragma once
/// The softmax over a large vocabulary and its loss, without its logits: they live for a few rows at a time, and so
/// does their gradient. [key-value-predict 3.2].

#include <cstdint>

#include "autograd/variable.hpp"

namespace engram {

struct LinearCrossEntropy {
  Variable loss;    ///< [1]: the sum over rows of row_weight * row_loss
  Tensor row_loss;  ///< [R], nats, not weighted; a constant
};

/// cross_entropy(linear(x, weight, bias, ProductResult::summed), targets, row_weight), in blocks of `rows` rows, of
/// which one block of logits at a time is in memory. As there the loss must be one of the losses that backward is
/// called with, because the gradients are made in the forward pass. Those of parameters are added to their own memory
/// at once: ParameterStore::zero_gradients comes before this, not between this and backward, and a tape of training
/// that ends without backward leaves them changed.
/// x: [..., n], R rows, which may be none; weight: [V, n], of x's dtype; bias: [V]; targets: [R] i32 in [0, V), checked
/// in debug builds only; row_weight: [R], usually 1 / tokens; a row of weight 0 is ignored, its gradient is exactly 0.
/// bias and row_weight are f32 beside bf16. rows: at least 1; above R: one block; where one kernel makes all of it
/// (kernels::linear_cross_entropy), as many as fill whole vectors. The result does not depend on threads; on `rows` by
/// rounding alone. Throws ShapeError, DTypeError, or Error for rows.
LinearCrossEntropy linear_cross_entropy(const Variable& x, const Variable& weight, const Variable& bias,
                                        const Tensor& targets, const Tensor& row_weight, std::int64_t rows);

}  // namespace engram
