#pragma once

#include "autograd/variable.hpp"

namespace engram {

/// dropout(relu(x + bias), rate) in one pass over memory, with the bits of the three one after the other in f32 and f64
/// (bf16 is rounded once in place of three times). It keeps its output alone. x: [..., n]; bias: [n], f32 beside bf16.
/// In inference mode and at rate 0 it is relu(x + bias). Throws Error unless 0 <= rate < 1, ShapeError or DTypeError.
Variable relu_dropout(const Variable& x, const Variable& bias, double rate);

}  // namespace engram
