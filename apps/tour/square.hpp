#pragma once
/// Step 14: an operation of our own, squares. In the tree its parts would be core/kernels/square.hpp, cpu/square.cpp
/// and autograd/functions/square.{hpp,cpp}; its row in the op table is tests/apps/tour/autograd_tour_op.cpp.

#include "autograd/variable.hpp"
#include "core/kernel.hpp"

namespace engram::tour {

namespace kernels {

/// y[i] = x[i]^2. Same shape and dtype.
inline constinit Kernel<void(const Tensor& x, Tensor& y)> square_forward{"square_forward"};
/// dx[i] (set or add) 2 x[i] dy[i].
inline constinit Kernel<void(const Tensor& x, const Tensor& dy, const Target& dx)> square_backward{"square_backward"};

}  // namespace kernels

/// x^2, element by element; keeps its input. x: any shape, f32 or f64.
Variable square(const Variable& x);

}  // namespace engram::tour
