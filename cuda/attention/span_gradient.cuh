#pragma once
/// The last step of the gradients of attention spans.

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

/// Where every query has its span: a body of launch_elements over the queries' shares of one head.
template <class T>
struct StoreQuerySpanGradients {
  double factor;         ///< S / R
  const double* shares;  ///< [B M]
  T* dspan;              ///< of the head in [B M, H]
  std::int64_t heads;
  Write write;

  template <int kWidth>
  __device__ void run(std::int64_t query) const {
    StoreSpanGradient<T>{factor, dspan + query * heads, write}(shares[query]);
  }
};

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
