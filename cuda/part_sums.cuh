#pragma once
/// Sums over the parts of a row's columns (core/rules/table_columns.hpp), by a warp.

#include "core/rules/table_columns.hpp"
#include "cuda/warp.cuh"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// The tree of sum_of_column_parts over sum_of_part(p), p < parts, each of which every lane has. Lane p keeps that of
/// part p, so that no array is needed; lanes of parts that are not there add zeros, which change nothing. Every lane
/// gets the sum.
template <class T, class SumOfPart>
__device__ __forceinline__ T sum_over_parts(std::int64_t parts, const SumOfPart& sum_of_part) {
  static_assert(kMostColumnParts <= kWarpLanes);
  T sum = 0;
#pragma unroll 1
  for (std::int64_t p = 0; p < parts; ++p) {
    const T part = sum_of_part(p);
    if (threadIdx.x == p) sum = part;
  }
  for (int distance = 1; distance < kMostColumnParts; distance *= 2) sum += __shfl_xor_sync(kAllLanes, sum, distance);
  return __shfl_sync(kAllLanes, sum, 0);
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
