#pragma once
/// A handle on contiguous, row-major memory of one device. Copies share the memory; there are no strides.

#include <cstddef>
#include <memory>

#include "core/device.hpp"
#include "core/dtype.hpp"
#include "core/shape.hpp"
#include "core/storage.hpp"

namespace engram {

class Tensor {
 public:
  /// An empty handle: converts to false, has shape [0] semantics of "absent".
  Tensor() = default;
  /// Uninitialised memory for `shape` elements from `allocator`, which must outlive every handle.
  Tensor(Shape shape, DType dtype, Device device, Allocator& allocator);

  explicit operator bool() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }
  std::int64_t count() const { return shape_.count(); }
  std::size_t bytes() const { return static_cast<std::size_t>(shape_.count()) * size_of(dtype_); }

  /// The first element. Throws DTypeError when T is not the element type, Error when the tensor is empty.
  template <class T>
  T* data() const {
    if (dtype_of<T> != dtype_ || !storage_) reject_access(dtype_of<T>);
    return reinterpret_cast<T*>(static_cast<std::byte*>(storage_->data()) + offset_);
  }
  void* raw() const { return static_cast<std::byte*>(storage_->data()) + offset_; }

  /// The same memory under another shape of the same count. Throws ShapeError otherwise.
  Tensor view(Shape shape) const;
  /// The slice [begin, end) of axis 0, sharing memory. Throws ShapeError outside the axis.
  Tensor rows(std::int64_t begin, std::int64_t end) const;
  /// How many handles share the memory; an op that consumes its input demands 1.
  long use_count() const { return storage_.use_count(); }

 private:
  [[noreturn]] void reject_access(DType asked) const;

  std::shared_ptr<Storage> storage_;
  std::size_t offset_ = 0;  // bytes
  Shape shape_;
  DType dtype_ = DType::f32;
  Device device_;
};

}  // namespace engram
