#pragma once

#include "autograd/variable.hpp"

namespace engram {

/// factor times row index[i] of the table for every i. table: [V, n]; index: i32 in [0, V) of up to four axes; result:
/// [index..., n]. Throws ShapeError or DTypeError; an index outside the table throws Error in debug builds and is
/// undefined behaviour in release builds.
Variable embedding(const Variable& table, const Tensor& index, double factor = 1);

}  // namespace engram
