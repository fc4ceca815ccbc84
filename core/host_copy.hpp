#pragma once
/// The elements of a tensor in memory of the host, wherever the tensor lies. Each call waits for the device; none is
/// for the loop of a training step, whose own copies reuse their memory.

#include <vector>

#include "core/backend.hpp"
#include "core/tensor.hpp"

namespace engram {

/// In their own type, T being that of the tensor's dtype; none of an absent tensor.
template <class T>
std::vector<T> host_copy(Backend& backend, const Tensor& tensor) {
  if (!tensor) return {};
  std::vector<T> host(static_cast<std::size_t>(tensor.count()));
  backend.copy(host.data(), tensor.data<const T>(), tensor.bytes(), CopyKind::device_to_host);
  return host;
}

/// As numbers of double precision. Throws DTypeError for another dtype than f32, f64 and bf16.
std::vector<double> host_doubles(Backend& backend, const Tensor& tensor);

}  // namespace engram
