#pragma once
/// Gradients of a table's rows: what a lookup read, put in order and summed. [product-key 2.2, 2.3].

#include <cstdint>

#include "core/kernel.hpp"
#include "core/rules/row_uses.hpp"

namespace engram::kernels {

/// Sorts the uses of a table of `table_rows` rows by (id, number of the use): order.uses, order.rows, order.starts and
/// order.count as RowOrder says, all written completely. ids: [R, A] i64 in [0, table_rows), fewer than 2^31 in all;
/// order's tensors have the capacity C = min(P, table_rows).
inline constinit Kernel<void(const Tensor& ids, std::int64_t table_rows, RowOrder& order)> order_row_uses{
    "order_row_uses"};

/// sums[u, :] = sum of weights[p] sources[p / A, :] over the uses p of row order.rows[u], in order; zero from place U
/// on. More than 256 uses are summed in pieces of 256, and the pieces' sums by a fixed tree, so that the bits depend on
/// nothing but the uses. sums: [C, width], f32 (beside bf16 sources too) or f64.
inline constinit Kernel<void(const RowUses& uses, const RowOrder& order, Tensor& sums)> sum_row_uses{"sum_row_uses"};

/// dtable[order.rows[u], :] = or += those sums. With `set`, all other rows become zero. dtable: [table rows, width],
/// f32 or f64.
inline constinit Kernel<void(const RowUses& uses, const RowOrder& order, const Target& dtable)> add_row_uses{
    "add_row_uses"};

/// stamps[order.rows[u]] = scalars.step + 1 for u < U: the step, counted from 1, that used a row last. Other rows keep
/// theirs. stamps: [table rows] i32.
inline constinit Kernel<void(const RowOrder& order, Tensor& stamps)> stamp_rows{"stamp_rows"};

}  // namespace engram::kernels
