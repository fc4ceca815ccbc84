#pragma once
/// Reductions over all threads of a block, every one of which must call. The order of the additions is a function of
/// the number of threads; every thread gets the same bits.

#include "cuda/warp.cuh"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// `neutral` changes nothing when combined. A block of kThreads threads in one dimension, a multiple of 32; of_warps:
/// shared memory for one value of every warp.
template <int kThreads, class T, class Combine>
__device__ __forceinline__ T block_reduce(T value, T neutral, Combine combine, T* of_warps) {
  static_assert(kThreads % kWarpLanes == 0 && kThreads <= 1024);
  value = warp_reduce(value, combine);
  if constexpr (kThreads > kWarpLanes) {
    constexpr int kWarps = kThreads / kWarpLanes;
    const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
    __syncthreads();  // a reduction before this one may still be read
    if (lane == 0) of_warps[threadIdx.x / kWarpLanes] = value;
    __syncthreads();
    value = warp_reduce(lane < kWarps ? of_warps[lane] : neutral, combine);
  }
  return value;
}

template <int kThreads, class T, class Combine>
__device__ __forceinline__ T block_reduce(T value, T neutral, Combine combine) {
  if constexpr (kThreads > kWarpLanes) {
    __shared__ T of_warps[kThreads / kWarpLanes];
    return block_reduce<kThreads>(value, neutral, combine, of_warps);
  }
  return warp_reduce(value, combine);
}

template <int kThreads, class T>
__device__ __forceinline__ T block_sum(T value, T* of_warps) {
  return block_reduce<kThreads>(value, T(0), Sum{}, of_warps);
}
template <int kThreads, class T>
__device__ __forceinline__ T block_sum(T value) {
  return block_reduce<kThreads>(value, T(0), Sum{});
}
template <int kThreads, class T>
__device__ __forceinline__ T block_maximum(T value) {
  return block_reduce<kThreads>(value, -static_cast<T>(INFINITY), Maximum{});
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
