#pragma once
/// Exercise 2: docs/exercises/02_cross_entropy.md.

#include <span>

#include "tests/exercises/matrix.hpp"

namespace engram::exercises {

/// logits: a row of scores for each position; targets: the right column of each row. Returns the mean over rows of
/// -log softmax(row)[target], and writes dlogits, its derivatives, of the shape of logits. Logits may be as large as
/// 1000.
double cross_entropy(const Matrix& logits, std::span<const int> targets, Matrix& dlogits);

}  // namespace engram::exercises
