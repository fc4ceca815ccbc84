#pragma once
/// The squares of a row's gradient, by a warp: what norms and row-wise AdaGrad are made of, in the same order for both.

#include "cuda/part_sums.cuh"
#include "cuda/table_row.cuh"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// By a warp: the squares of `scale` times the gradient of a row, over the columns that are held.
template <int kWidth, class C>
__device__ double squares_of_row(const GradientRows<C>& gradients, std::int64_t u, C scale,
                                 const TableColumns& columns) {
  const std::int64_t part = columns.part();
  return sum_over_parts<double>(columns.parts(), [&](std::int64_t p) {
    double sum = 0;
    for (std::int64_t c = p * part + threadIdx.x * kWidth; c < (p + 1) * part; c += kWarpLanes * kWidth) {
      const Pack<C, kWidth> g = gradients.template at<kWidth>(u, c);
      for (int j = 0; j < kWidth; ++j) {
        const auto value = static_cast<double>(g.value[j] * scale);
        sum += value * value;
      }
    }
    return warp_sum(sum);
  });
}
/// Whether squares_of_row may go in packs of kWidth: a part is whole packs.
template <class C, int kWidth>
bool squares_in_packs(const RowGradients& gradients, const TableColumns& columns) {
  return columns.part() % kWidth == 0 && gradients_in_packs<C, kWidth>(gradients, columns.count);
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
