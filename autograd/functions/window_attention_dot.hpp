#pragma once

#include "autograd/functions/windowed_result.hpp"

namespace engram {

/// Attention by dot products of every position to itself and the L - 1 positions before it. With C carried rows in
/// front of those of the block and n = min(L, preceding[b, t] + 1, C + t + 1), position t sees the rows j = C + t + 1 -
/// n, ..., C + t, and row j stands in column L - 1 - (C + t - j), the newest in the last one:
///   weights = softmax over j of (keys[b, j, :] + position_keys[column, :]) . queries[b, t, :],
///   context[b, t, :] = sum over j of weights_j (values[b, j, :] + position_values[column, :]).
/// keys: [B, C + M, k]; queries: [B, M, k]; values: [B, C + M, n]; position_keys: [L, k], position_values: [L, n], each
/// may be absent: zeros; preceding: [B, M] i32, how many positions before this one belong to its sequence, also those
/// of earlier chunks. Scores are not scaled. Carried rows get gradients like the others: where they are to be
/// constants, concatenate constants. Throws ShapeError, DTypeError or DeviceError. "Recurrent Memory Networks for
/// Language Modeling" (Tran, Bisazza, Monz 2016); [key-value-predict 1.7].
WindowedResult window_attention_dot(const Variable& keys, const Variable& queries, const Variable& values,
                                    const Variable& position_keys, const Variable& position_values,
                                    const Tensor& preceding, std::int64_t window);

}  // namespace engram
