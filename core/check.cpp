#include "core/check.hpp"

#include "core/error.hpp"

namespace engram {

void check_shape(std::string_view op, std::string_view what, const Tensor& tensor, const Shape& wanted) {
  if (!tensor) throw ShapeError(text(op, ": ", what, " must be ", wanted, ", got no tensor"));
  if (tensor.shape() != wanted) throw ShapeError(text(op, ": ", what, " must be ", wanted, ", got ", tensor.shape()));
}

void check_dtype(std::string_view op, std::string_view what, const Tensor& tensor, DType wanted) {
  if (tensor.dtype() != wanted) throw DTypeError(text(op, ": ", what, " must be ", wanted, ", got ", tensor.dtype()));
}

void check_same_device(std::string_view op, const Tensor& first, const Tensor& second) {
  if (first.device() != second.device())
    throw DeviceError(text(op, ": all tensors must be on one device, got ", first.device(), " and ", second.device()));
}

}  // namespace engram
