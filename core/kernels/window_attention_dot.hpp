#pragma once
/// Attention by dot products over a short window with a table of positions, as a recurrent memory over words has it:
/// "Recurrent Memory Networks for Language Modeling" (Tran, Bisazza, Monz 2016); [key-value-predict 1.7]. Shapes, types
/// and the rows that a position sees are those of core/kernels/window_rows.hpp, whose sums follow.

#include "core/kernel.hpp"
#include "core/rules/window_rule.hpp"

namespace engram::kernels {

/// weights[b, t, :] = softmax over the rows j that position t sees of
///   score = (keys[b, j, :] + position_keys[column, :]) . queries[b, t, :]; 0 in the other columns.
/// keys: [B, C + M, k]; queries: [B, M, k]; position_keys: [L, k], or empty: zeros.
inline constinit Kernel<void(const Tensor& keys, const Tensor& position_keys, const Tensor& queries,
                             const Tensor& preceding, const WindowRule& rule, Tensor& weights)>
    window_dot_weights{"window_dot_weights"};

}  // namespace engram::kernels
