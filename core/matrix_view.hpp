#pragma once
/// A batch of matrices inside a tensor: the one place where strides exist.

#include <cstdint>

#include "core/tensor.hpp"

namespace engram {

struct MatrixView {
  Tensor tensor;            ///< keeps the memory alive
  std::int64_t offset = 0;  ///< elements from the tensor's first element
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_stride = 0;    ///< elements between rows
  std::int64_t batch_stride = 0;  ///< elements between matrices; 0 repeats one matrix

  /// The last two axes of a tensor as matrices, the others as the batch; rank 2: one matrix.
  static MatrixView of(const Tensor& tensor);
  /// All rows of a tensor along its last axis as one matrix.
  static MatrixView flat(const Tensor& tensor);

  template <class T>
  T* data(std::int64_t batch = 0) const {
    return tensor.data<T>() + offset + batch * batch_stride;
  }
};

}  // namespace engram
