#pragma once

#include "autograd/variable.hpp"

namespace engram {

/// Softmax over the last axis. x: [..., n], n >= 1; infinities as in core/kernels/softmax.hpp. Throws ShapeError for
/// rank 0.
Variable softmax(const Variable& x);

}  // namespace engram
