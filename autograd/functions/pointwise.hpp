#pragma once
/// Activations; the formulas are in core/rules/pointwise.hpp.

#include "autograd/variable.hpp"

namespace engram {

/// max(x, 0); keeps its output.
Variable relu(const Variable& x);
/// x Phi(x), the exact form; keeps its input.
Variable gelu(const Variable& x);
/// Keeps its output.
Variable tanh(const Variable& x);
/// 1 / (1 + exp(-x)); keeps its output.
Variable sigmoid(const Variable& x);
/// x / (1 + exp(-x)); keeps its input.
Variable silu(const Variable& x);

}  // namespace engram
