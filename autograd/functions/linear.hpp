#pragma once

#include "autograd/variable.hpp"

namespace engram {

/// y[..., :] = weight x[..., :] + bias. x: [..., in]; weight: [out, in]; bias: [out] or absent; y: [..., out].
/// Throws ShapeError when they do not fit.
Variable linear(const Variable& x, const Variable& weight, const Variable& bias = {});

}  // namespace engram
