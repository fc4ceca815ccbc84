#include "core/matrix_view.hpp"

#include "core/error.hpp"

namespace engram {

MatrixView MatrixView::of(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  if (shape.rank() < 2) throw ShapeError(text("matrix view: needs at least two axes, got ", shape));
  return {tensor, 0, shape[-2], shape[-1], shape[-1], shape.rank() == 2 ? 0 : shape[-2] * shape[-1]};
}

MatrixView MatrixView::flat(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  if (shape.rank() < 1) throw ShapeError(text("matrix view: needs at least one axis, got ", shape));
  return {tensor, 0, shape.rows(), shape[-1], shape[-1], 0};
}

}  // namespace engram
