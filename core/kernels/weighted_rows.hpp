#pragma once
/// Weighted sums of rows of a large table by index, and the gradient of the weights. [product-key 1.1, 2.1]; the
/// gradient of the table is that of core/kernels/row_order.hpp.

#include "core/kernel.hpp"
#include "core/rules/row_uses.hpp"
#include "core/rules/table_columns.hpp"

namespace engram::kernels {

/// y[r, :] = sum over j of weights[r, j] values[ids[r, j], :width], in order of j. values: [N, stride], f32, f64 or
/// bf16, of which the first `width` columns are read, all or fewer (core/files/mapped_table.hpp); ids: [R, A] i64 in
/// [0, N); weights: [R, A], f64 beside f64 values, else f32; y: [R, width], of the weights' dtype, or bf16 on devices
/// with bf16 activations. Byte offsets take 64 bits.
inline constinit Kernel<void(const Tensor& values, const Tensor& ids, const Tensor& weights, Tensor& y)>
    weighted_rows_forward{"weighted_rows_forward"};

/// dweights[r, j] (set or add) sum over c of values[ids[r, j], c] dy[r, c]: over the parts of the row, and these by the
/// tree of sum_of_column_parts. Goes through the uses in `order`, that of `ids`, so that every row of the table comes
/// from memory once. `columns`: which of the table `values` and `dy` have, [N, count] and [R, count]. dy: of y's dtype;
/// dweights: of the weights'.
inline constinit Kernel<void(const Tensor& values, const Tensor& ids, const Tensor& dy, const RowOrder& order,
                             TableColumns columns, const Target& dweights)>
    weighted_rows_weight_gradient{"weighted_rows_weight_gradient"};

}  // namespace engram::kernels
