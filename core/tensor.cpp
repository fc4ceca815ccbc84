#include "core/tensor.hpp"

#include "core/error.hpp"

namespace engram {

Tensor::Tensor(Shape shape, DType dtype, Device device, Allocator& allocator)
    : storage_(std::allocate_shared<Storage>(std::pmr::polymorphic_allocator<Storage>(&allocator.objects()), allocator,
                                             static_cast<std::size_t>(shape.count()) * size_of(dtype))),
      shape_(shape),
      dtype_(dtype),
      device_(device) {}

void Tensor::reject_access(DType asked) const {
  if (!storage_) throw Error(text("tensor: data of an empty tensor was asked for (as ", asked, ")"));
  throw DTypeError(text("tensor: elements are ", dtype_, ", asked for ", asked, ", shape ", shape_));
}

Tensor Tensor::view(Shape shape) const {
  if (shape.count() != shape_.count())
    throw ShapeError(text("view: the number of elements must stay, got ", shape_, " -> ", shape));
  Tensor other = *this;
  other.shape_ = shape;
  return other;
}

Tensor Tensor::rows(std::int64_t begin, std::int64_t end) const {
  if (shape_.rank() < 1 || begin < 0 || end < begin || end > shape_[0])
    throw ShapeError(text("rows: needs 0 <= begin <= end <= rows of axis 0, got [", begin, ", ", end, ") of ", shape_));
  Tensor slice = *this;
  const std::int64_t row = shape_[0] == 0 ? 0 : shape_.count() / shape_[0];
  slice.offset_ += static_cast<std::size_t>(begin * row) * size_of(dtype_);
  slice.shape_ = shape_.with(0, end - begin);
  return slice;
}

}  // namespace engram
