#pragma once
/// Softmax cross entropy that leaves its gradient where its logits were.

#include "core/kernel.hpp"

namespace engram::kernels {

/// row_loss[r] = log(sum_i exp(logits[r, i])) - logits[r, targets[r]]   (nats, not weighted)
/// loss[0]    = sum over r of row_weight[r] row_loss[r], in double, in an order that depends on R only
/// logits[r, i] <- row_weight[r] (softmax(logits[r])[i] - [i == targets[r]])   when `gradient`, else unspecified
/// logits: [R, V] f32 or f64, overwritten; targets: [R] i32 in [0, V); row_weight, row_loss: [R], loss: [1], of the
/// logits' dtype. A row of weight 0 has gradient exactly 0, whatever its logits.
inline constinit Kernel<void(Tensor& logits, const Tensor& targets, const Tensor& row_weight, bool gradient,
                             Tensor& row_loss, Tensor& loss)>
    cross_entropy{"cross_entropy"};

}  // namespace engram::kernels
