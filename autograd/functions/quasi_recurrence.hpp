#pragma once

#include "autograd/functions/recurrence.hpp"

namespace engram {

/// M steps of a quasi-recurrent layer over B streams, fo-pooling: of pre-activations of z, f and o,
///   z = tanh, f, o = sigmoid;  c_t = f_t * c_{t-1} + (1 - f_t) * z_t,  h_t = o_t * c_t,
/// number by number: nothing is multiplied by a matrix. Bradbury et al.: "Quasi-Recurrent Neural Networks" (2017).
/// inputs: [B, M, 3 k]. Passed with std::move and held by nobody else, its memory serves the gates; else they are
/// copied. cells: [B, rows, k], a constant: those before the first step, the newest last, others are not read; absent
/// or without rows: the start of all streams. preceding: i32 [B, M], a constant: how many positions before this one
/// belong to its sequence; 0 resets the stream. f32 or f64. M is at least 1, B may be 0. Gradients flow to the inputs,
/// within the chunk. Throws ShapeError, DTypeError or DeviceError.
Recurrence quasi_recurrence(Variable inputs, const Tensor& cells, const Tensor& preceding);

}  // namespace engram
