#pragma once

#include <cstdint>
#include <vector>

#include "core/allocator.hpp"
#include "core/backend.hpp"
#include "core/tensor.hpp"

namespace engram {

/// Where pasts have their memory, for how many streams, and of which numbers.
struct PastPlace {
  Backend& backend;      ///< must outlive the pasts
  Allocator& allocator;  ///< must outlive them too
  std::int64_t streams;  ///< B
  DType dtype;           ///< of the step's activations

  /// The place of what has another dtype.
  PastPlace with(DType other) const { return {backend, allocator, streams, other}; }
  /// Memory that is not set yet.
  Tensor empty(const Shape& shape) const { return Tensor(shape, dtype, backend.device(), allocator); }
  /// Sets memory to zero.
  void clear(const Tensor& memory) const {
    const std::vector<std::byte> zeros(memory.bytes());
    backend.copy(memory.raw(), zeros.data(), zeros.size(), CopyKind::host_to_device);
  }
};

}  // namespace engram
