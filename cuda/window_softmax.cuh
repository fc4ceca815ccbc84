#pragma once
/// A warp's work on the scores of one position over its window: what all attentions over short windows share.

#include "core/rules/window_rule.hpp"
#include "cuda/warp.cuh"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// How many columns of a position that sees `seen` rows take part: the last ones.
__device__ __forceinline__ std::int64_t counted_columns(const WindowRule& rule, std::int64_t seen) {
  return rule.count_missing ? rule.window : seen;
}

/// The scores in the last `counted` columns become weights; the others 0. All lanes call, after a barrier.
template <class C>
__device__ __forceinline__ void window_softmax(C* row, std::int64_t window, std::int64_t counted) {
  const std::int64_t first = window - counted;
  const int lane = static_cast<int>(threadIdx.x);
  C largest = -static_cast<C>(INFINITY);
  for (std::int64_t c = first + lane; c < window; c += kWarpLanes) largest = Maximum{}(largest, row[c]);
  largest = warp_maximum(largest);
  C sum = 0;
  for (std::int64_t c = first + lane; c < window; c += kWarpLanes) sum += std::exp(row[c] - largest);
  sum = warp_sum(sum);
  __syncwarp();  // columns change lanes: they were counted from `first`
  for (std::int64_t c = lane; c < window; c += kWarpLanes) row[c] = c < first ? C(0) : std::exp(row[c] - largest) / sum;
}

/// In the last `counted` columns of a row, gradients g of weights become those of scores, weight (g - mean of g); the
/// others are set to 0. Where one weight is nearly 1, that is what is left of a difference: so the mean is made again
/// of differences from the first one. All lanes call, after a barrier.
template <class C>
__device__ __forceinline__ void window_softmax_gradient(const C* weights, C* row, std::int64_t window,
                                                        std::int64_t counted) {
  const std::int64_t first = window - counted;
  const int lane = static_cast<int>(threadIdx.x);
  C rough = 0, rest = 0;
  for (std::int64_t c = first + lane; c < window; c += kWarpLanes) rough += weights[c] * row[c];
  rough = warp_sum(rough);
  for (std::int64_t c = first + lane; c < window; c += kWarpLanes) {
    row[c] -= rough;
    rest += weights[c] * row[c];
  }
  rest = warp_sum(rest);
  __syncwarp();  // columns change lanes
  for (std::int64_t c = lane; c < window; c += kWarpLanes) row[c] = c < first ? C(0) : weights[c] * (row[c] - rest);
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
