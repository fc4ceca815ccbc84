#pragma once

#include "autograd/variable.hpp"

namespace engram {

/// x[..., :] + bias: a vector added to every row. x: [..., n]; bias: [n], f32 beside bf16; result: x's shape and dtype.
/// Throws ShapeError or DTypeError when they do not fit.
Variable add_bias(const Variable& x, const Variable& bias);

}  // namespace engram
