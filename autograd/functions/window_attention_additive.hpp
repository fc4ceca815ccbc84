#pragma once

#include "autograd/functions/windowed_result.hpp"

namespace engram {

struct AdditiveWindow {
  std::int64_t window = 1;  ///< L, positions, at least 1
  /// Positions that do not exist, before the sequence or what was carried of it, count with a key projection and a
  /// value of zeros, so that weights always sum to 1 over L columns. Else they are left out.
  bool count_missing = false;
};

/// Additive attention of every position to the L positions before it, its own left out. With C carried rows in front of
/// those of the block and n = min(L, preceding[b, t], C + t), position t sees the rows j = C + t - n, ..., C + t - 1:
///   weights = softmax over j of score_vector . tanh(keys[b, j, :] + queries[b, t, :]),
///   context[b, t, :] = sum over j of weights_j values[b, j, :].
/// A position that sees nothing has a context of zeros and hands no gradient on. No tanh is kept.
///
/// keys, projected: [B, C + M, d]; queries, projected: [B, M, d]; score_vector: [d], f64 beside f64, else f32; values:
/// [B, C + M, n]; preceding: [B, M] i32, how many positions before this one belong to its sequence, also those of
/// earlier chunks. Carried rows get gradients like the others: where they are to be constants, concatenate constants.
/// Throws ShapeError, DTypeError or DeviceError.
/// "Frustratingly Short Attention Spans in Neural Language Modeling" (Daniluk et al. 2017), equations 1 to 3;
/// [key-value-predict 1.3, 2, 3.4].
WindowedResult window_attention_additive(const Variable& keys, const Variable& queries, const Variable& score_vector,
                                         const Variable& values, const Tensor& preceding,
                                         const AdditiveWindow& options);

}  // namespace engram
