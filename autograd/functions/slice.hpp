#pragma once

#include "autograd/variable.hpp"

namespace engram {

/// Indices begin (included) to end (excluded) of `axis` (negative: from the end); may be empty. Along the first axis
/// the result shares the memory of x, else it is a copy. Throws ShapeError outside of 0 <= begin <= end <= size.
Variable slice(const Variable& x, int axis, std::int64_t begin, std::int64_t end);

}  // namespace engram
