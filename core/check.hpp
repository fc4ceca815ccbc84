#pragma once
/// One-line checks for the top of a differentiable function. Each throws with the op's name and the facts.

#include <string_view>

#include "core/tensor.hpp"

namespace engram {

/// `what` must have exactly this shape. Throws ShapeError.
void check_shape(std::string_view op, std::string_view what, const Tensor& tensor, const Shape& wanted);
/// `what` must have this element type. Throws DTypeError.
void check_dtype(std::string_view op, std::string_view what, const Tensor& tensor, DType wanted);
/// Both must be on one device. Throws DeviceError.
void check_same_device(std::string_view op, const Tensor& first, const Tensor& second);

}  // namespace engram
