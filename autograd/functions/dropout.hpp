#pragma once

#include "autograd/variable.hpp"

namespace engram {

/// Drops each element with probability `rate` (rounded to 1/65536) and scales the others by 1 / (1 - rate). Returns x
/// itself in inference mode and at rate 0. Draws from the step's next random stream; no mask is stored. Throws Error
/// unless 0 <= rate < 1.
Variable dropout(const Variable& x, double rate);

}  // namespace engram
