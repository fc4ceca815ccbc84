#pragma once

#include "autograd/variable.hpp"
#include "core/kernels/matmul.hpp"

namespace engram {

/// c = op(a) op(b), op being the identity or the transpose of the last two axes. Both of rank 2, or both of rank 3 with
/// equal first axis (a batch of products). Throws ShapeError when they do not fit.
Variable matmul(const Variable& a, const Variable& b, kernels::Transpose transpose_a = kernels::Transpose::no,
                kernels::Transpose transpose_b = kernels::Transpose::no);

}  // namespace engram
