#pragma once
/// Reductions over the 32 lanes of a warp, all of which must call. The order of the additions is fixed; every lane gets
/// the same bits.

#include "cuda/launch.hpp"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

inline constexpr int kWarpLanes = 32;
inline constexpr unsigned kAllLanes = 0xffffffffu;
/// Warps of a block where each has a row of its own.
inline constexpr int kRowWarps = 4;

/// Combines in a tree of exchanges; `combine` must be commutative, so that both partners compute the same.
template <class T, class Combine>
__device__ __forceinline__ T warp_reduce(T value, Combine combine) {
  for (int distance = kWarpLanes / 2; distance > 0; distance /= 2)
    value = combine(value, __shfl_xor_sync(kAllLanes, value, distance));
  return value;
}

struct Sum {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a + b;
  }
};
/// A NaN on either side wins, as it must when a maximum is to reveal it.
struct Maximum {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};

template <class T>
__device__ __forceinline__ T warp_sum(T value) {
  return warp_reduce(value, Sum{});
}
template <class T>
__device__ __forceinline__ T warp_maximum(T value) {
  return warp_reduce(value, Maximum{});
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
