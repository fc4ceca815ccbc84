#pragma once
/// Small tensors for the tour: from numbers, and back to text. Memory of the host only.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/tensor.hpp"

namespace engram::tour {

/// An f64 tensor on the CPU with these numbers, row-major.
inline Tensor tensor_of(Allocator& memory, Shape shape, const std::vector<double>& numbers) {
  Tensor tensor(shape, DType::f64, {DeviceKind::cpu}, memory);
  std::ranges::copy(numbers, tensor.data<double>());
  return tensor;
}

/// The numbers of an f64 tensor with four decimals, rows divided by '|'.
inline std::string numbers(const Tensor& tensor) {
  const std::int64_t columns = tensor.shape().rank() > 0 ? tensor.shape()[-1] : 1;
  std::string line;
  for (std::int64_t i = 0; i < tensor.count(); ++i)
    line += fmt::format("{}{:.4f}", i == 0 ? "" : i % columns == 0 ? " | " : " ", tensor.data<double>()[i]);
  return line;
}

}  // namespace engram::tour
