#pragma once
/// Exercise 3: docs/exercises/03_linear.md.

#include <span>

#include "tests/exercises/matrix.hpp"

namespace engram::exercises {

/// The forward pass was y = x W^T + b, with x [rows, in], w [out, in], b [out], y [rows, out], and dy is the gradient
/// of y. Writes dx, dw and db, of the shapes of x, w and b.
void linear_backward(const Matrix& x, const Matrix& w, const Matrix& dy, Matrix& dx, Matrix& dw, std::span<double> db);

}  // namespace engram::exercises
