#pragma once
/// Copies: conversions of the element type, scaled accumulation, and blocks of rows at strides.

#include "core/kernel.hpp"

namespace engram::kernels {

/// y[i] = x[i] in y's element type. Same count; any pair of f32, f64, bf16.
inline constinit Kernel<void(const Tensor& x, Tensor& y)> convert{"convert"};

/// y[i] (set or add) factor x[i]. Same count and dtype, f32, f64 or bf16; or bf16 into f32.
inline constinit Kernel<void(const Tensor& x, double factor, const Target& y)> accumulate{"accumulate"};

/// Runs of elements inside a tensor: run number i starts at `offset + i * stride`.
struct Runs {
  std::int64_t offset = 0;
  std::int64_t stride = 0;
};
/// For i < runs, j < length:  y[to.offset + i to.stride + j] (set or add) x[from.offset + i from.stride + j].
/// f32, f64 or bf16. Concatenation and slicing along any axis are calls of it.
inline constinit Kernel<void(const Tensor& x, Runs from, const Target& y, Runs to, std::int64_t runs,
                             std::int64_t length)>
    copy_runs{"copy_runs"};

}  // namespace engram::kernels
