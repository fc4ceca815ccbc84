#pragma once

#include "autograd/variable.hpp"

namespace engram {

/// a times b, element by element. b: of a's shape, or [..., 1]: one number for each row of a. Throws ShapeError or
/// DTypeError.
Variable multiply(const Variable& a, const Variable& b);

}  // namespace engram
