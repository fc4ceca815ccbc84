#pragma once
/// Small operations on f64 host memory with every property of the tape that tests need, independent of the kernels.

#include <array>
#include <functional>
#include <vector>

#include "autograd/tape.hpp"

namespace engram::harness {

/// y = sum of factors[i] * inputs[i]; its node keeps nothing.
Variable combine(std::vector<double> factors, const std::vector<Variable>& inputs);
/// y = a b, element by element; its node keeps both.
Variable multiply(const Variable& a, const Variable& b);
/// [1]: the sum of all elements.
Variable total(const Variable& x);
/// y = sum of the inputs, whose gradients are handed on with Backward::pass_through.
Variable pass_sum(const std::vector<Variable>& inputs);
/// (2 x, 3 x): two outputs, of which backward uses the gradients that arrived.
std::array<Variable, 2> two_and_three(const Variable& x);
/// y = x; backward calls `seen` with the pass before it hands the gradient on.
Variable probe(const Variable& x, std::function<void(Step&, Backward&)> seen);

}  // namespace engram::harness
