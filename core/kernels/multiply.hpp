#pragma once
/// Element-wise product, and products of rows.

#include "core/kernel.hpp"

namespace engram::kernels {

/// y[r, i] (set or add) a[r, i] b[r, i], or a[r, i] b[r] where b has one number for each row. a, y: [..., n]; b: of
/// that shape or [..., 1]. One dtype.
inline constinit Kernel<void(const Tensor& a, const Tensor& b, const Target& y)> multiply{"multiply"};
/// y[r] (set or add) sum over i of a[r, i] b[r, i]. a, b: [..., n]; y: [..., 1]. One dtype; sums in f32 for bf16.
inline constinit Kernel<void(const Tensor& a, const Tensor& b, const Target& y)> row_dots{"row_dots"};

}  // namespace engram::kernels
