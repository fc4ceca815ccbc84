#pragma once
/// Exercise 13: docs/exercises/13_wrong_gradient.md.

#include <vector>

#include "tests/exercises/matrix.hpp"

namespace engram::exercises {

/// A block of a network, for one vector x of n numbers:
///   norm = (x - mean(x)) / sqrt(variance(x) + 1e-5)         the mean of squares about the mean
///   inner = tanh(w1 norm)                                   w1 [m, n]
///   y = x + w2 inner                                        w2 [n, m]
struct Block {
  Matrix w1, w2;
};

/// y. This function is right.
std::vector<double> block_forward(const Block& block, const std::vector<double>& x);

struct BlockGradients {
  Matrix w1, w2;
  std::vector<double> x;
};

/// Gradients of the block's weights and of x; dy is that of y. This function has two mistakes.
BlockGradients block_backward(const Block& block, const std::vector<double>& x, const std::vector<double>& dy);

}  // namespace engram::exercises
