#pragma once
/// Weighted sums of rows that lie anywhere in memory: a warp has some columns of one sum, and reads several rows before
/// it adds the first.

#include <algorithm>

#include "cuda/vector_access.cuh"
#include "cuda/warp.cuh"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

inline constexpr int kRowsInFlight = 4;

/// A lane's columns: kPacks packs of kWidth, with those of the other lanes between them.
template <class T, int kWidth, int kPacks>
struct RowColumns {
  using C = Compute<T>;
  static constexpr int kColumns = kWarpLanes * kWidth * kPacks;

  Pack<C, kWidth> pack[kPacks];

  /// The first column of one of this lane's packs.
  __device__ __forceinline__ static std::int64_t column(std::int64_t tile, int p) {
    return tile * kColumns + (static_cast<std::int64_t>(p) * kWarpLanes + threadIdx.x) * kWidth;
  }
};

/// sums = terms.weight(i) times the row at terms.row(i), added up in order of i for begin <= i < end, from zero.
/// Terms: the type Element of a row's numbers, row(i) and weight(i).
template <int kWidth, int kPacks, class Terms>
__device__ __forceinline__ RowColumns<typename Terms::Element, kWidth, kPacks> sum_scaled_rows(
    const Terms& terms, std::int64_t begin, std::int64_t end, std::int64_t tile, std::int64_t width) {
  using T = typename Terms::Element;
  using C = Compute<T>;
  using Columns = RowColumns<T, kWidth, kPacks>;
  Columns sums = {};
  for (std::int64_t base = begin; base < end; base += kRowsInFlight) {
    Columns rows[kRowsInFlight] = {};
    C weights[kRowsInFlight] = {};
#pragma unroll
    for (int k = 0; k < kRowsInFlight; ++k) {
      if (base + k >= end) continue;
      const T* row = terms.row(base + k);
      weights[k] = terms.weight(base + k);
#pragma unroll
      for (int p = 0; p < kPacks; ++p)
        if (Columns::column(tile, p) < width) rows[k].pack[p] = load<kWidth>(row + Columns::column(tile, p));
    }
#pragma unroll
    for (int k = 0; k < kRowsInFlight; ++k) {
      if (base + k >= end) continue;
#pragma unroll
      for (int p = 0; p < kPacks; ++p)
        for (int j = 0; j < kWidth; ++j) sums.pack[p].value[j] += weights[k] * rows[k].pack[p].value[j];
    }
  }
  return sums;
}

/// Calls body.operator()<kWidth, kPacks>() for rows of `width` numbers of T: up to four packs of 16 bytes per lane
/// where packs are allowed, else single numbers.
template <class T, class Body>
void with_row_columns(std::int64_t width, bool aligned, Body&& body) {
  if (!aligned || width % kPackWidth<T> != 0)
    body.template operator()<1, 4>();
  else if (width <= kWarpLanes * kPackWidth<T>)
    body.template operator()<kPackWidth<T>, 1>();
  else
    body.template operator()<kPackWidth<T>, sizeof(T) == 2 ? 2 : 4>();
}

/// A warp for every one of `rows` rows and every tile of `columns` columns.
inline LaunchSize warp_for_each_row(std::int64_t rows, std::int64_t width, std::int64_t columns) {
  return {.blocks = {(rows + kRowWarps - 1) / kRowWarps, (width + columns - 1) / columns},
          .threads = {kWarpLanes, kRowWarps}};
}
__device__ __forceinline__ std::int64_t row_of_warp() {
  return static_cast<std::int64_t>(blockIdx.x) * kRowWarps + threadIdx.y;
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
