#pragma once

#include <span>

#include "autograd/variable.hpp"

namespace engram {

/// linear() with several weights whose rows stand one below the other, without putting them together in memory:
/// y[..., :] = (weights[0] x + biases[0], weights[1] x + biases[1], ...). x: [..., in]; weights[i]: [n_i, in], of x's
/// dtype; biases[i]: [n_i], one for each weight, f32 beside bf16; y: [..., sum of n_i], f32 beside bf16, as it was
/// summed. Throws ShapeError or DTypeError when they do not fit.
Variable joined_linear(const Variable& x, std::span<const Variable> weights, std::span<const Variable> biases);

}  // namespace engram
