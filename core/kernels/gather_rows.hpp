#pragma once
/// Rows of a table by index, and the way back.

#include "core/kernel.hpp"

namespace engram::kernels {

/// y[r, :] = factor table[index[r], :]. table: [V, n]; index: [R] i32 in [0, V); y: [R, n], of the table's dtype.
inline constinit Kernel<void(const Tensor& table, const Tensor& index, double factor, Tensor& y)> gather_rows{
    "gather_rows"};
/// dtable[index[r], :] += factor dy[r, :], in order of r for every row. With `set`, dtable is zeroed first.
/// dy: f32, f64 or bf16; dtable: of the same dtype, f32 for bf16.
inline constinit Kernel<void(const Tensor& dy, const Tensor& index, double factor, const Target& dtable)> scatter_rows{
    "scatter_rows"};

}  // namespace engram::kernels
