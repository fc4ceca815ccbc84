#pragma once
/// A row that is read once: each lane of a warp keeps its elements in registers. Where a block has the row, or elements
/// come one by one, nothing is kept, and the row is read again.

#include "cuda/row_team.cuh"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// Elements of a row that are kept where they come in packs of kWidth: all or none.
template <class Team, int kWidth>
inline constexpr std::int64_t kKeptElements = kWidth > 1 && Team::kSize == kWarpLanes ? kLongestWarpRow : 0;

/// C: the numbers' type in registers.
template <class Team, int kWidth, class C>
struct KeptRow {
  static constexpr int kPacks = static_cast<int>(kKeptElements<Team, kWidth> / (Team::kSize * kWidth));
  Pack<C, kWidth> pack[kPacks > 0 ? kPacks : 1];
};

/// Calls body(p, i) for the p-th pack that this thread keeps of a row of n, whose first element is the row's i-th.
template <class Team, int kWidth, class Body>
__device__ __forceinline__ void for_kept(std::int64_t n, Body body) {
#pragma unroll
  for (int p = 0; p < KeptRow<Team, kWidth, float>::kPacks; ++p) {
    const std::int64_t i = std::int64_t{kWidth} * (Team::rank() + p * Team::kSize);
    if (i < n) body(p, i);
  }
}
/// Calls body(i) for this thread's elements where nothing is kept.
template <class Team, int kWidth, class Body>
__device__ __forceinline__ void for_not_kept(std::int64_t n, Body body) {
  if constexpr (kKeptElements<Team, kWidth> == 0) for_row<Team, kWidth>(n, body);
}

/// to[i] = the sum of element i of the warps' rows, in order. Every thread of the block calls.
template <class Team, int kWidth, class C>
__device__ __forceinline__ void write_sums_of_rows(std::int64_t n, const KeptRow<Team, kWidth, C>& row, C* to) {
  __shared__ C of_rows[Team::kRows][kKeptElements<Team, kWidth>];
  __syncthreads();  // sums before these may still be read
  for_kept<Team, kWidth>(n, [&](int p, std::int64_t i) {
    for (int j = 0; j < kWidth; ++j) of_rows[threadIdx.y][i + j] = row.pack[p].value[j];
  });
  __syncthreads();
  for (std::int64_t i = threadIdx.y * Team::kSize + threadIdx.x; i < n; i += Team::kBlockThreads) {
    C sum = of_rows[0][i];
    for (int r = 1; r < Team::kRows; ++r) sum += of_rows[r][i];
    to[i] = sum;
  }
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
