#pragma once
/// The last step of the gradient of an attention span.

#include "core/write.hpp"
#include "cuda/launch.hpp"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// Takes the sum of the queries' shares.
template <class T>
struct StoreSpanGradient {
  double factor;  ///< S / R
  T* dspan;       ///< of the head
  Write write;

  __device__ void operator()(double sum) const {
    const T gradient = static_cast<T>(factor * sum);
    *dspan = write == Write::add ? *dspan + gradient : gradient;
  }
};

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
