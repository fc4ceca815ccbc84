#pragma once

#include "autograd/variable.hpp"

namespace engram {

/// factor times the sum of all elements of x (any shape), added up in double; [1], f32 for bf16. An empty x gives 0.
Variable sum(const Variable& x, double factor = 1);

}  // namespace engram
