#pragma once
/// Products of small pieces in place, for kernels that cut their matrices themselves: nothing is packed, so pieces of
/// both operands should lie in the first two caches. Every element is summed in the order of the inner axis.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/write.hpp"
#include "cpu/loop_hints.hpp"
#include "cpu/packed_columns.hpp"

namespace engram::cpu {

/// Vectors of c that lie in registers; of AVX-512 there are 32, else 16.
inline constexpr int kSumsInRegisters = kVectorBytes == 64 ? 24 : 12;
/// Vectors of one panel of columns, and places of the inner axis between two stores of sums: the rows of a whole number
/// of every register block fit into kProductRows. With 16 registers a panel of 3 would need all of them, and a compiler
/// then reads it from memory for every row. Of AVX-512 a panel of 6, 4 rows high, makes half as much (GCC 12 on a
/// Zen 5: 123 GFLOP/s a core, 250 with panels of 4).
inline constexpr int kPanelVectors = kVectorBytes == 64 ? 4 : 2;
inline constexpr std::int64_t kProductDepth = 288, kProductRows = 24;

/// Memory that is needed soon: fetched into the second cache little by little while a product is at work, since many
/// fetches at once are waited for.
class FetchedAhead {
 public:
  FetchedAhead() = default;
  /// Of `count` elements, all of them by the end of a product of so many multiply-adds.
  template <class T>
  FetchedAhead(const T* begin, std::int64_t count, std::int64_t multiply_adds)
      : next_(reinterpret_cast<const char*>(begin)), end_(reinterpret_cast<const char*>(begin + count)) {
    constexpr std::int64_t kStep = 16;
    const std::int64_t places = std::max<std::int64_t>(
        1, multiply_adds * static_cast<std::int64_t>(sizeof(T)) / (kSumsInRegisters * kVectorBytes));
    step_ = ((end_ - next_) / places + kStep) / kStep * kStep;
  }
  const char* next() const { return next_; }
  /// For every place of the inner axis.
  std::int64_t step() const { return next_ < end_ ? step_ : 0; }
  void fetched(std::int64_t places) { next_ = std::min(end_, next_ + places * step()); }

 private:
  const char *next_ = nullptr, *end_ = nullptr;
  std::int64_t step_ = 0;
};

template <class T>
inline constexpr std::int64_t kVectorLanes = kVectorBytes / static_cast<std::int64_t>(sizeof(T));
template <class T>
inline constexpr std::int64_t kPanelColumns = kPanelVectors* kVectorLanes<T>;

/// c[m, n] (set or add) a[m, k] b[k, n]: element (i, p) of a is a[i * a_row + p * a_inner]; rows of b and c are
/// b_stride and c_stride apart, and are read and written up to whole vectors. Panels of b, kPanelColumns each, lie side
/// by side, or b_panel apart: one that is met by many rows is best stored on its own. `start`: of set, row i starts
/// from start[i] (nullptr: zero).
template <class T>
struct PieceProduct {
  std::int64_t m = 0, n = 0, k = 0;
  const T* a = nullptr;
  std::int64_t a_row = 0, a_inner = 0;
  const T* b = nullptr;
  std::int64_t b_stride = 0, b_panel = kPanelColumns<T>;
  T* c = nullptr;
  std::int64_t c_stride = 0;
  Write write = Write::set;
  const T* start = nullptr;
  FetchedAhead* ahead = nullptr;
};

/// Rounded up to whole vectors.
template <class T>
constexpr std::int64_t whole_vectors(std::int64_t count) {
  return (count + kVectorLanes<T> - 1) / kVectorLanes<T> * kVectorLanes<T>;
}

namespace detail {

template <int kRows, int kVectors, class T>
void multiply_block(const PieceProduct<T>& g) {
  using Vector = typename ProductLanes<T>::Vector;
  constexpr std::int64_t kLanes = kVectorLanes<T>;
  T* const c = g.c;
  const std::int64_t c_stride = g.c_stride, a_row = g.a_row, a_inner = g.a_inner, b_stride = g.b_stride, depth = g.k;
  Vector sum[kRows][kVectors];
  ENGRAM_UNROLL(24)
  for (int row = 0; row < kRows; ++row) {
    ENGRAM_UNROLL(6)
    for (int v = 0; v < kVectors; ++v)
      if (g.write == Write::add)
        std::memcpy(&sum[row][v], c + row * c_stride + v * kLanes, sizeof(Vector));
      else
        sum[row][v] = Vector{} + (g.start == nullptr ? T(0) : g.start[row]);
  }
  const T *a = g.a, *b = g.b;
  const char* next = g.ahead == nullptr ? nullptr : g.ahead->next();
  const std::int64_t step = g.ahead == nullptr ? 0 : g.ahead->step();
  for (std::int64_t p = 0; p < depth; ++p, a += a_inner, b += b_stride, next += step) {
    __builtin_prefetch(next, 0, 2);
    Vector right[kVectors];
    ENGRAM_UNROLL(6)
    for (int v = 0; v < kVectors; ++v) std::memcpy(&right[v], b + v * kLanes, sizeof(Vector));
    ENGRAM_UNROLL(24)
    for (int row = 0; row < kRows; ++row) {
      const T factor = a[row * a_row];
      ENGRAM_UNROLL(6)
      for (int v = 0; v < kVectors; ++v) sum[row][v] += factor * right[v];
    }
  }
  if (g.ahead != nullptr) g.ahead->fetched(depth);
  ENGRAM_UNROLL(24)
  for (int row = 0; row < kRows; ++row) {
    ENGRAM_UNROLL(6)
    for (int v = 0; v < kVectors; ++v) std::memcpy(c + row * c_stride + v * kLanes, &sum[row][v], sizeof(Vector));
  }
}

/// One panel of columns over all rows.
template <int kVectors, class T>
void multiply_panel(PieceProduct<T> g) {
  constexpr int kRows = kSumsInRegisters / kVectors;
  const auto advance = [&g](std::int64_t rows) {
    g.a += rows * g.a_row;
    g.c += rows * g.c_stride;
    if (g.start != nullptr) g.start += rows;
  };
  std::int64_t row = 0;
  for (; row + kRows <= g.m; row += kRows, advance(kRows)) multiply_block<kRows, kVectors>(g);
  for (; row < g.m; ++row, advance(1)) multiply_block<1, kVectors>(g);
}

/// One panel of `vectors`, at least kVectors.
template <int kVectors = 1, class T>
void multiply_panel_of(int vectors, const PieceProduct<T>& g) {
  if constexpr (kVectors < kPanelVectors)
    if (vectors > kVectors) return multiply_panel_of<kVectors + 1>(vectors, g);
  multiply_panel<kVectors>(g);
}

}  // namespace detail

/// On the calling thread.
template <class T>
void multiply_pieces(const PieceProduct<T>& g) {
  constexpr std::int64_t kLanes = kVectorLanes<T>;
  const std::int64_t vectors = whole_vectors<T>(g.n) / kLanes;
  const std::int64_t parts = std::max<std::int64_t>(1, (g.k + kProductDepth - 1) / kProductDepth);
  const std::int64_t depth = std::max<std::int64_t>(1, (g.k + parts - 1) / parts);
  for (std::int64_t first = 0; first == 0 || first < g.k; first += depth)
    for (std::int64_t v = 0; v < vectors; v += kPanelVectors) {
      PieceProduct<T> part = g;
      part.k = std::min(depth, g.k - first);
      part.a += first * g.a_inner;
      part.b += first * g.b_stride + v / kPanelVectors * g.b_panel;
      part.c += v * kLanes;
      if (first > 0) part.write = Write::add;
      detail::multiply_panel_of(static_cast<int>(std::min<std::int64_t>(kPanelVectors, vectors - v)), part);
    }
}

}  // namespace engram::cpu
