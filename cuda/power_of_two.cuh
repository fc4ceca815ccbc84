#pragma once
/// 2^x in f32, as fast as a card computes it.

#include <cmath>

#include "cuda/launch.hpp"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// Within 2 units in the last place; 0 where the result is below 2^-126, also for -infinity.
__device__ __forceinline__ float power_of_two(float x) {
#if defined(ENGRAM_CUDA_SIMULATED)
  return x < -126.0f ? 0.0f : std::exp2(x);
#else
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#endif
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
