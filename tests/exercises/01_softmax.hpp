#pragma once
/// Exercise 1: docs/exercises/01_softmax.md.

#include <span>

namespace engram::exercises {

/// y: the softmax of a row; dy: the derivative of the loss by each y. Writes dx, the derivative by each x. All three
/// are of one length, at least 1.
void softmax_backward(std::span<const double> y, std::span<const double> dy, std::span<double> dx);

}  // namespace engram::exercises
