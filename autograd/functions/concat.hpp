#pragma once

#include <span>

#include "autograd/variable.hpp"

namespace engram {

/// The parts one after the other along `axis` (negative: from the end). All other sizes, and the dtypes, are equal.
/// Throws ShapeError, also when there is no part.
Variable concat(std::span<const Variable> parts, int axis);

}  // namespace engram
