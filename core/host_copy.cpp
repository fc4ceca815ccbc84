#include "core/host_copy.hpp"

#include "core/dtype.hpp"

namespace engram {

std::vector<double> host_doubles(Backend& backend, const Tensor& tensor) {
  if (!tensor) return {};
  return dispatch_storage(tensor.dtype(), "host copy", [&]<class T>() {
    const std::vector<T> host = host_copy<T>(backend, tensor);
    std::vector<double> wide;
    wide.reserve(host.size());
    for (const T value : host) wide.push_back(static_cast<double>(static_cast<Compute<T>>(value)));
    return wide;
  });
}

}  // namespace engram
