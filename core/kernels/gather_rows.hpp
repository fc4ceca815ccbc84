#pragma once
/// Rows of a table by index, and the way back.

#include "core/kernel.hpp"

namespace engram::kernels {

/// y[r, :] = factor table[index[r], :]. table: [V, n]; index: [R] i32 in [0, V); y: [R, n].
inline constinit Kernel<void(const Tensor& table, const Tensor& index, double factor, Tensor& y)> gather_rows{
    "gather_rows"};
/// dtable[index[r], :] += factor dy[r, :], in order of r for every row. With `set`, dtable is zeroed first.
inline constinit Kernel<void(const Tensor& dy, const Tensor& index, double factor, Tensor& dtable, Write write)>
    scatter_rows{"scatter_rows"};

}  // namespace engram::kernels
