#pragma once

#include "autograd/variable.hpp"

namespace engram {

struct CrossEntropy {
  Variable loss;    ///< [1]: the sum over rows of row_weight * row_loss
  Tensor row_loss;  ///< [R], nats, not weighted; a constant
};

/// Softmax cross entropy of R rows of V logits. It consumes its logits: their memory receives the gradient, which is
/// final, because the weights are known. On a tape of inference, too, they are overwritten. So
///   - pass them with std::move, and let nobody else hold their memory (throws Error otherwise); who needs them beside
///     the loss copies them before, by host_doubles();
///   - the loss must be one of the losses that backward is called with, and be used for nothing else.
/// logits: [..., V]; targets: [R] i32 in [0, V), checked in debug builds only; row_weight: [R] of the logits' dtype,
/// usually 1 / tokens, 0 for padding. Throws ShapeError or DTypeError.
CrossEntropy cross_entropy(Variable logits, const Tensor& targets, const Tensor& row_weight);

}  // namespace engram
