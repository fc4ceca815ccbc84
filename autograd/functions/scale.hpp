#pragma once

#include "autograd/variable.hpp"

namespace engram {

/// factor * x.
Variable scale(const Variable& x, double factor);

}  // namespace engram
