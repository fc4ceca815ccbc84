#pragma once
/// Exercise 8: docs/exercises/08_attention.md.

#include "tests/exercises/matrix.hpp"

namespace engram::exercises {

/// Causal attention of one head. q, k, v: [positions, width] each. Returns y [positions, width], whose row t is the sum
/// over j <= t of a(t, j) v(j), a(t, .) being the softmax over j <= t of q(t) . k(j) / sqrt(width).
Matrix attention(const Matrix& q, const Matrix& k, const Matrix& v);

/// Its backward pass: dy is the gradient of y. Writes dq, dk and dv, of the shapes of q, k and v.
void attention_backward(const Matrix& q, const Matrix& k, const Matrix& v, const Matrix& dy, Matrix& dq, Matrix& dk,
                        Matrix& dv);

}  // namespace engram::exercises
