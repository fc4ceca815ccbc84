#pragma once
/// Sorting by row, which kernels leave to a library: CUB's radix sort on cards (cuda/card/row_sort.cu), the standard
/// library's on the simulated device (cuda/simulated/row_sort.cpp).

#include <cstdint>

#include "core/step.hpp"
#include "cuda/device_namespace.hpp"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// Keys of u32 or u64, of which the lowest `bits` bits count and the others are zero, with the numbers of the uses
/// beside them. All memory is the device's, and none of it overlaps.
template <class Key>
struct RowSort {
  std::int64_t count = 0;
  int bits = 0;
  const Key* keys = nullptr;
  const std::int32_t* uses = nullptr;
  Key* sorted_keys = nullptr;
  std::int32_t* sorted_uses = nullptr;
};

/// Ascending keys; equal ones stay in order. Works in memory of the step, and can be captured.
void sort_by_row(Step& step, const RowSort<std::uint32_t>& sort);
void sort_by_row(Step& step, const RowSort<std::uint64_t>& sort);

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
