#pragma once
/// Dynamic shared memory without `extern __shared__`, whose declarations of different types in one source contradict
/// each other.

#include "cuda/launch.hpp"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// The block's LaunchSize::shared_bytes bytes, aligned to 16. Not initialised: NaN on the simulated device.
template <class T>
__device__ __forceinline__ T* dynamic_shared() {
  static_assert(alignof(T) <= 16);
#if defined(ENGRAM_CUDA_SIMULATED)
  return reinterpret_cast<T*>(simulated::dynamic_shared_memory());
#else
  extern __shared__ __align__(16) unsigned char engram_dynamic_shared[];
  return reinterpret_cast<T*>(engram_dynamic_shared);
#endif
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
