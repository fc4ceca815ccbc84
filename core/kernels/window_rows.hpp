#pragma once
/// What attentions over short windows share, whatever their scores are: sums of the rows that a position sees, and the
/// way back. [key-value-predict 1.3, 1.7, 2, 3.4]; core/rules/window_rule.hpp says which rows
/// those are. Everywhere: rows [B, C + M, n]; preceding [B, M] i32; weights [B, M, L], the column of the newest row
/// being the last; y [B, M, n]. Matrices are f32 or f64, or bf16 on devices with bf16 activations; weights are f64
/// beside f64, else f32. A row that nobody sees is not used, whatever it holds. position_rows: [L, n], one for every
/// column, or empty: zeros.

#include "core/kernel.hpp"
#include "core/rules/window_rule.hpp"

namespace engram::kernels {

/// y[b, t, :] (set or add) = sum over the rows j that position t sees of
/// weights[b, t, column] (rows[b, j, :] + position_rows[column, :]); zero for an empty window.
inline constinit Kernel<void(const Tensor& weights, const Tensor& rows, const Tensor& position_rows,
                             const Tensor& preceding, const WindowRule& rule, const Target& y)>
    window_sums{"window_sums"};

/// drows[b, j, :] (set or add) = sum over the positions t that see row j, in ascending order, of
/// weights[b, t, column] dy[b, t, :]; zero for a row that nobody sees.
inline constinit Kernel<void(const Tensor& weights, const Tensor& dy, const Tensor& preceding, const WindowRule& rule,
                             const Target& drows)>
    window_row_gradients{"window_row_gradients"};

/// Through the sums and the softmax that made their weights: with g_j = dy[b, t, :] . (rows[b, j, :] +
/// position_rows[column, :]) for rows that position t sees, and g = 0 for missing ones that count,
/// dscores[b, t, column] = weights[b, t, column] (g_column - sum of weights g); 0 in columns that do not count.
inline constinit Kernel<void(const Tensor& weights, const Tensor& rows, const Tensor& position_rows, const Tensor& dy,
                             const Tensor& preceding, const WindowRule& rule, Tensor& dscores)>
    window_score_gradients{"window_score_gradients"};

}  // namespace engram::kernels
