#pragma once
/// Dynamic shared memory without `extern __shared__`, whose declarations of different types in one source contradict
/// each other.

#include "cuda/launch.hpp"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// The block's LaunchSize::shared_bytes bytes, aligned to 16 or to kAlignment, which may cost a block as many bytes
/// more. Not initialised: NaN on the simulated device.
template <class T, std::size_t kAlignment = 16>
__device__ __forceinline__ T* dynamic_shared() {
  static_assert(alignof(T) <= 16 && (kAlignment == 16 || kAlignment == 1024));
#if defined(ENGRAM_CUDA_SIMULATED)
  return reinterpret_cast<T*>(simulated::dynamic_shared_memory());
#else
  if constexpr (kAlignment == 1024) {
    extern __shared__ __align__(1024) unsigned char engram_aligned_shared[];
    return reinterpret_cast<T*>(engram_aligned_shared);
  }
  extern __shared__ __align__(16) unsigned char engram_dynamic_shared[];
  return reinterpret_cast<T*>(engram_dynamic_shared);
#endif
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
