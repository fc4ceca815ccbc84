#pragma once
/// Products whose right-hand side is met again and again, as the weight of a recurrent layer is once per step: it is
/// packed once, a block of columns at a time, and a block's product ends in memory that is still hot for what comes
/// after it. A library's product packs it every time, which for a few dozen rows on the left costs as much as
/// multiplying.
///
/// Every element is summed in the order of the inner axis, whichever rows stand beside its own.

#include <cstdint>
#include <cstring>

#include "core/write.hpp"
#include "cpu/loop_hints.hpp"
#include "cpu/vector_bytes.hpp"

namespace engram::cpu {

namespace detail {

template <class T>
struct ProductLanes;
template <>
struct ProductLanes<float> {
  using Vector = float __attribute__((vector_size(kVectorBytes), may_alias));
};
template <>
struct ProductLanes<double> {
  using Vector = double __attribute__((vector_size(kVectorBytes), may_alias));
};

/// Rows and vectors of sums that fit into the registers together: of AVX-512 there are 32, else 16.
inline constexpr int kSumRows = 6;
inline constexpr int kSumVectors = kVectorBytes == 64 ? 4 : 2;
/// Places of the inner axis between two stores of the sums: a block's part and the rows' stay in the second cache.
inline constexpr std::int64_t kInnerPart = 512;

}  // namespace detail

/// Columns of one packed block.
template <class T>
inline constexpr std::int64_t kBlockColumns = detail::kSumVectors* kVectorBytes / static_cast<int>(sizeof(T));

/// Where a column's elements are; nullptr: they are zero.
template <class T>
struct PackedColumn {
  const T* first;
  std::int64_t stride;
};

/// One block: packed[p * kBlockColumns + c] = element p < depth of columns(c), aligned to whole vectors.
template <class T, class Columns>
void pack_columns(std::int64_t depth, T* packed, Columns&& columns) {
  // A line of a stored row at a time, whichever axis runs along it.
  constexpr std::int64_t kLine = 16;
  for (std::int64_t first = 0; first < depth; first += kLine) {
    const std::int64_t end = first + kLine < depth ? first + kLine : depth;
    for (std::int64_t c = 0; c < kBlockColumns<T>; ++c) {
      const PackedColumn<T> column = columns(c);
      for (std::int64_t p = first; p < end; ++p)
        packed[p * kBlockColumns<T> + c] = column.first == nullptr ? T(0) : column.first[p * column.stride];
    }
  }
}

namespace detail {

template <int kRows, class T>
void multiply_rows(const T* a, std::int64_t a_stride, const T* packed, std::int64_t depth, T* c, std::int64_t c_stride,
                   Write write, const T* next) {
  using Vector = typename ProductLanes<T>::Vector;
  constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));
  Vector sum[kRows][kSumVectors];
  ENGRAM_UNROLL(8)
  for (int row = 0; row < kRows; ++row) {
    ENGRAM_UNROLL(8)
    for (int v = 0; v < kSumVectors; ++v) {
      sum[row][v] = Vector{};
      if (write == Write::add) std::memcpy(&sum[row][v], c + row * c_stride + v * kLanes, sizeof(Vector));
    }
  }
  constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t p = 0; p < depth; ++p) {
    __builtin_prefetch(next + p * kLine, 0, 2);
    Vector b[kSumVectors];
    ENGRAM_UNROLL(8)
    for (int v = 0; v < kSumVectors; ++v)
      b[v] = *reinterpret_cast<const Vector*>(packed + p * kBlockColumns<T> + v * kLanes);
    ENGRAM_UNROLL(8)
    for (int row = 0; row < kRows; ++row) {
      const T factor = a[row * a_stride + p];
      ENGRAM_UNROLL(8)
      for (int v = 0; v < kSumVectors; ++v) sum[row][v] += factor * b[v];
    }
  }
  ENGRAM_UNROLL(8)
  for (int row = 0; row < kRows; ++row) {
    ENGRAM_UNROLL(8)
    for (int v = 0; v < kSumVectors; ++v) std::memcpy(c + row * c_stride + v * kLanes, &sum[row][v], sizeof(Vector));
  }
}

template <class T>
void multiply_rows(std::int64_t rows, const T* a, std::int64_t a_stride, const T* packed, std::int64_t depth, T* c,
                   std::int64_t c_stride, Write write, const T* next) {
  switch (rows) {
    case 1:
      return multiply_rows<1>(a, a_stride, packed, depth, c, c_stride, write, next);
    case 2:
      return multiply_rows<2>(a, a_stride, packed, depth, c, c_stride, write, next);
    case 3:
      return multiply_rows<3>(a, a_stride, packed, depth, c, c_stride, write, next);
    case 4:
      return multiply_rows<4>(a, a_stride, packed, depth, c, c_stride, write, next);
    case 5:
      return multiply_rows<5>(a, a_stride, packed, depth, c, c_stride, write, next);
    default:
      return multiply_rows<kSumRows>(a, a_stride, packed, depth, c, c_stride, write, next);
  }
}

}  // namespace detail

/// c[rows, kBlockColumns] = a[rows, depth] times one packed block, on the calling thread. depth > 0.
template <class T>
void multiply_columns(std::int64_t rows, const T* a, std::int64_t a_stride, const T* packed, std::int64_t depth, T* c,
                      std::int64_t c_stride) {
  static_assert(detail::kSumRows == 6);
  for (std::int64_t first = 0; first < depth; first += detail::kInnerPart) {
    const std::int64_t part = depth - first < detail::kInnerPart ? depth - first : detail::kInnerPart;
    const T* const from = packed + first * kBlockColumns<T>;
    // What comes next in memory is fetched meanwhile, a line for every place that some rows go along.
    const T* next = from + part * kBlockColumns<T>;
    constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(T));
    for (std::int64_t row = 0; row < rows; row += detail::kSumRows) {
      detail::multiply_rows(rows - row, a + row * a_stride + first, a_stride, from, part, c + row * c_stride, c_stride,
                            first > 0 ? Write::add : Write::set, next);
      if (row / detail::kSumRows + 1 < kBlockColumns<T> / kLine) next += part * kLine;
    }
  }
}

}  // namespace engram::cpu
