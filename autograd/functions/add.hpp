#pragma once

#include "autograd/variable.hpp"

namespace engram {

/// a + b, element by element; same shape and dtype, nothing is broadcast. Throws ShapeError or DTypeError.
Variable add(const Variable& a, const Variable& b);

}  // namespace engram
