#pragma once
/// Matrix products.

#include "core/kernel.hpp"
#include "core/matrix_view.hpp"

namespace engram::kernels {

enum class Transpose : bool { no, yes };

/// c_b (set or add) factor op_a(a_b) op_b(b_b) for every b < batch, op(x) being x or its transpose.
/// The views' sizes are those of the stored matrices. f32 or f64, one dtype for all, or
/// a and b bf16 with c bf16 or f32: sums are f32 then. With `add`, matrices of c may not overlap unless batch stride 0
/// is meant as a sum over the batch, which is done in order of b.
inline constinit Kernel<void(const MatrixView& a, Transpose transpose_a, const MatrixView& b, Transpose transpose_b,
                             const MatrixView& c, std::int64_t batch, double factor, Write write)>
    matmul{"matmul"};

}  // namespace engram::kernels
