#pragma once

#include "autograd/variable.hpp"

namespace engram {

/// The same numbers in the same order under another shape of the same count; shares the memory of x. Throws ShapeError.
Variable reshape(const Variable& x, Shape shape);

}  // namespace engram
