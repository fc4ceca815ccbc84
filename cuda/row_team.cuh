#pragma once
/// Who works on one row of a matrix: a warp for short rows, a block for long ones. A kernel over rows is a template of
/// its team and of the width of its accesses; with_row_team chooses both by the row length and the alignment alone.

#include "cuda/block.cuh"
#include "cuda/vector_access.cuh"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// Four warps in a block, a row each. A warp whose row does not exist returns as a whole.
struct WarpTeam {
  static constexpr int kSize = kWarpLanes;
  static constexpr int kRows = 4;
  static constexpr int kBlockThreads = kSize * kRows;

  __device__ static std::int64_t row() { return static_cast<std::int64_t>(blockIdx.x) * kRows + threadIdx.y; }
  __device__ static int rank() { return static_cast<int>(threadIdx.x); }
  template <class T>
  __device__ static T sum(T value) {
    return warp_sum(value);
  }
  template <class T>
  __device__ static T maximum(T value) {
    return warp_maximum(value);
  }
  /// Orders the team's memory accesses.
  __device__ static void barrier() { __syncwarp(); }
};

struct BlockTeam {
  static constexpr int kSize = 256;
  static constexpr int kRows = 1;
  static constexpr int kBlockThreads = kSize;

  __device__ static std::int64_t row() { return blockIdx.x; }
  __device__ static int rank() { return static_cast<int>(threadIdx.x); }
  template <class T>
  __device__ static T sum(T value) {
    return block_sum<kSize>(value);
  }
  template <class T>
  __device__ static T maximum(T value) {
    return block_maximum<kSize>(value);
  }
  __device__ static void barrier() { __syncthreads(); }
};

/// Calls body(i) for every kWidth elements of a row of n that are this thread's, a multiple of kWidth.
template <class Team, int kWidth, class Body>
__device__ __forceinline__ void for_row(std::int64_t n, Body body) {
  for (std::int64_t i = std::int64_t{kWidth} * Team::rank(); i < n; i += Team::kSize * kWidth) body(i);
}

template <class Team>
LaunchSize row_launch(std::int64_t rows) {
  return {.blocks = (rows + Team::kRows - 1) / Team::kRows, .threads = {Team::kSize, Team::kRows}};
}

/// Rows up to this long are a warp's.
inline constexpr std::int64_t kLongestWarpRow = 1024;

/// Calls body.operator()<Team, kWidth>() for rows of n elements of T.
template <class T, class Body>
void with_row_team(std::int64_t n, bool aligned, Body&& body) {
  const bool in_packs = aligned && n % kPackWidth<T> == 0;
  if (n <= kLongestWarpRow) {
    if (in_packs)
      body.template operator()<WarpTeam, kPackWidth<T>>();
    else
      body.template operator()<WarpTeam, 1>();
  } else {
    if (in_packs)
      body.template operator()<BlockTeam, kPackWidth<T>>();
    else
      body.template operator()<BlockTeam, 1>();
  }
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
