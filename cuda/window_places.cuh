#pragma once
/// Who works on what in kernels over short windows: a thread has one column of one row of a result, or a warp has one
/// position.

#include "core/dtype.hpp"
#include "cuda/vector_access.cuh"
#include "cuda/warp.cuh"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

inline constexpr int kWindowColumns = 128;

/// A block for every row and 128 of its columns: row blockIdx.x, column window_column().
inline LaunchSize column_for_each_thread(std::int64_t rows, std::int64_t width) {
  return {.blocks = {rows, (width + kWindowColumns - 1) / kWindowColumns}, .threads = kWindowColumns};
}
__device__ __forceinline__ std::int64_t window_column() {
  return static_cast<std::int64_t>(blockIdx.y) * kWindowColumns + threadIdx.x;
}

/// A warp for every position: position window_position().
inline LaunchSize warp_for_each_position(std::int64_t positions) {
  return {.blocks = (positions + kRowWarps - 1) / kRowWarps, .threads = {kWarpLanes, kRowWarps}};
}
__device__ __forceinline__ std::int64_t window_position() {
  return static_cast<std::int64_t>(blockIdx.x) * kRowWarps + threadIdx.y;
}

/// One number, as it is computed with.
template <class T>
__device__ __forceinline__ Compute<T> number(const T* from) {
  return load<1>(from).value[0];
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
