#pragma once
/// Products of every position's vector with the rows that it sees, by a warp: scores, or gradients of weights.

#include "core/rules/window_rule.hpp"
#include "core/tensor.hpp"
#include "cuda/window_places.cuh"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

template <class T>
struct WindowProducts {
  const T* rows;
  const T* position_rows;  // or null
  const T* vectors;
  const std::int32_t* preceding;
  WindowRule rule;
  std::int64_t width, positions;

  /// Of tensors as in core/kernels/window_rows.hpp; vectors: [B, M, n].
  WindowProducts(const Tensor& row_tensor, const Tensor& position_tensor, const Tensor& vector_tensor,
                 const Tensor& before, const WindowRule& window_rule)
      : rows(row_tensor.data<const T>()),
        position_rows(position_tensor ? position_tensor.data<const T>() : nullptr),
        vectors(vector_tensor.data<const T>()),
        preceding(before.data<const std::int32_t>()),
        rule(window_rule),
        width(vector_tensor.shape()[2]),
        positions(vector_tensor.shape()[0] * window_rule.block) {}

  /// result[column] = vector . (row + position row) in the columns of the rows that the position sees, 0 in the others.
  /// Returns how many rows those are. All lanes of a warp call; what they wrote, each of them may then read.
  __device__ __forceinline__ std::int64_t write(std::int64_t place, Compute<T>* result) const {
    using C = Compute<T>;
    const std::int64_t b = place / rule.block, t = place % rule.block, window = rule.window;
    const std::int64_t seen = rule.seen(t, preceding[place]);
    const T* first = rows + (b * rule.rows() + rule.end(t) - seen) * width;
    const T* vector = vectors + place * width;
    for (std::int64_t c = threadIdx.x; c < window - seen; c += kWarpLanes) result[c] = 0;
    for (std::int64_t j = 0; j < seen; ++j) {
      const std::int64_t column = window - seen + j;
      C sum = 0;
      for (std::int64_t i = threadIdx.x; i < width; i += kWarpLanes) {
        C value = number(first + j * width + i);
        if (position_rows != nullptr) value += number(position_rows + column * width + i);
        sum += value * number(vector + i);
      }
      sum = warp_sum(sum);
      if (threadIdx.x == 0) result[column] = sum;
    }
    __syncwarp();
    return seen;
  }
};

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
