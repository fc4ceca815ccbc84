#pragma once
/// Columns of a product's right side that lie along memory, turned in registers.

#include <algorithm>
#include <cstdint>
#include <utility>

#include "cpu/loop_hints.hpp"
#include "cpu/part_vectors.hpp"

namespace engram::cpu {

namespace detail {

/// The numbers of two vectors in turns: of their first halves, or of their second ones.
template <int kFirst, class Vector, int... kLane>
Vector in_turns(const Vector& a, const Vector& b, std::integer_sequence<int, kLane...>) {
  constexpr int kLanes = sizeof...(kLane);
  return __builtin_shufflevector(a, b, (kFirst + kLane % 2 * kLanes + kLane / 2)...);
}

/// to[p, i] = from[i, p] for a square of as many rows as a vector has lanes. Rows from `rows` on are zero and those
/// from `depth` on not written.
template <class T>
void transpose_square(const T* from, std::int64_t from_stride, std::int64_t rows, std::int64_t depth, T* to,
                      std::int64_t to_stride) {
  using Vector = typename ProductLanes<T>::Vector;
  constexpr int kLanes = static_cast<int>(kVectorLanes<T>);
  constexpr auto kAll = std::make_integer_sequence<int, kLanes>();
  Vector row[kLanes], turned[kLanes];
  if (rows == kLanes && depth == kLanes) {
    ENGRAM_UNROLL(16)
    for (int i = 0; i < kLanes; ++i) std::memcpy(&row[i], from + i * from_stride, sizeof(Vector));
  } else {
    const PartVector<T> part(depth);
    ENGRAM_UNROLL(16)
    for (int i = 0; i < kLanes; ++i) row[i] = i < rows ? part.load(from + i * from_stride) : Vector{};
  }
  // Shuffled like two halves of a deck as often as a number of a row has bits, rows and columns have changed places.
  ENGRAM_UNROLL(4)
  for (int step = 1; step < kLanes; step *= 2) {
    ENGRAM_UNROLL(8)
    for (int i = 0; i < kLanes / 2; ++i) {
      turned[2 * i] = in_turns<0>(row[i], row[i + kLanes / 2], kAll);
      turned[2 * i + 1] = in_turns<kLanes / 2>(row[i], row[i + kLanes / 2], kAll);
    }
    ENGRAM_UNROLL(16)
    for (int i = 0; i < kLanes; ++i) row[i] = turned[i];
  }
  ENGRAM_UNROLL(16)
  for (int i = 0; i < kLanes; ++i)
    if (i < depth) std::memcpy(to + i * to_stride, &row[i], sizeof(Vector));
}

}  // namespace detail

/// to[p, j] = from[j, p] for j < columns, zero behind them up to whole vectors, and p < depth. Rows of `to` are
/// whole_vectors(columns) apart.
template <class T>
void transpose_panel(const T* from, std::int64_t from_stride, std::int64_t columns, std::int64_t depth, T* to) {
  constexpr std::int64_t kLanes = kVectorLanes<T>;
  const std::int64_t stride = whole_vectors<T>(columns);
  for (std::int64_t j = 0; j < columns; j += kLanes)
    for (std::int64_t p = 0; p < depth; p += kLanes)
      detail::transpose_square(from + j * from_stride + p, from_stride, std::min(kLanes, columns - j),
                               std::min(kLanes, depth - p), to + p * stride + j, stride);
}

}  // namespace engram::cpu
