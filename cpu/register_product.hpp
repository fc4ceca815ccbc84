#pragma once
/// Products by blocks of sums in registers. Operands are read where they lie, but for a right side that lies along its
/// columns: pieces of both should lie in the first two caches. Every element is summed in the order of the inner axis,
/// whatever stands beside it.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/write.hpp"
#include "cpu/loop_hints.hpp"
#include "cpu/part_vectors.hpp"
#include "cpu/transposed_panel.hpp"

namespace engram::cpu {

/// Vectors of c that lie in registers, and vectors of one panel of columns. AVX-512 and aarch64 have 32 registers,
/// others have 16: a panel of 3 would need all of them, and a compiler then reads it from memory for every row. Of
/// AVX-512 a panel of 6, 4 rows high, makes half as much (GCC 12 on a Zen 5: 123 GFLOP/s a core, 250 with panels of 4).
#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr int kSumsInRegisters = 24, kPanelVectors = 4;
#else
inline constexpr int kSumsInRegisters = 12, kPanelVectors = 2;
#endif
inline constexpr int kPanelRows = kSumsInRegisters / kPanelVectors;  ///< whose sums lie in registers
/// Places of the inner axis between two stores of sums; the rows of a whole number of every register block fit into
/// kProductRows.
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
inline constexpr std::int64_t kPanelColumns = kPanelVectors* kVectorLanes<T>;

/// c[m, n] (set or add) factor a[m, k] b[k, n]: element (i, p) of a is a[i * a_row + p * a_inner], rows of b and c are
/// b_stride and c_stride apart. Panels of b, kPanelColumns each, lie side by side, or b_panel apart: one that is met by
/// many rows is best stored on its own. b_transposed: b lies as [n, k]. `start`: of set, the sums of row i start from
/// start[i] (nullptr: zero).
template <class T>
struct PieceProduct {
  std::int64_t m = 0, n = 0, k = 0;
  T factor = 1;
  const T* a = nullptr;
  std::int64_t a_row = 0, a_inner = 0;
  const T* b = nullptr;
  std::int64_t b_stride = 0, b_panel = kPanelColumns<T>;
  bool b_transposed = false;
  T* c = nullptr;
  std::int64_t c_stride = 0;
  Write write = Write::set;
  const T* start = nullptr;
  /// Places of the inner axis between two stores of sums; at most kProductDepth if b_transposed.
  std::int64_t part = kProductDepth;
  FetchedAhead* ahead = nullptr;
};

namespace detail {

/// c's columns are vectors of the processor, all whole but for the last one: a WholeVector, HalfVector or PartVector.
template <int kRows, int kVectors, class Last, class T>
[[gnu::noinline]] void multiply_block(const PieceProduct<T>& g, const Last& last) {
  using Vector = typename ProductLanes<T>::Vector;
  constexpr std::int64_t kLanes = kVectorLanes<T>;
  constexpr int kWhole = kVectors - 1, kArray = kWhole == 0 ? 1 : kWhole;
  constexpr WholeVector<T> whole;
  const std::int64_t a_row = g.a_row, a_inner = g.a_inner, b_stride = g.b_stride, depth = g.k;
  Vector sum[kRows][kArray];
  typename Last::Vector last_sum[kRows];
  ENGRAM_UNROLL(12)
  for (int row = 0; row < kRows; ++row) {
    const T start = g.start == nullptr ? T(0) : g.start[row];
    ENGRAM_UNROLL(6)
    for (int v = 0; v < kWhole; ++v) sum[row][v] = Vector{} + start;
    last_sum[row] = typename Last::Vector{} + start;
  }
  // Three rows to a pointer, as an address has a base and once or twice an index: more pointers than that would not all
  // lie in registers.
  constexpr int kGroup = 3, kGroups = (kRows + kGroup - 1) / kGroup;
  const T* rows[kGroups];
  ENGRAM_UNROLL(4)
  for (int group = 0; group < kGroups; ++group) rows[group] = g.a + group * kGroup * a_row;
  const T* b = g.b;
  const char* next = g.ahead == nullptr ? reinterpret_cast<const char*>(g.b) : g.ahead->next();
  const std::int64_t step = g.ahead == nullptr ? 0 : g.ahead->step();
  for (std::int64_t p = 0; p < depth; ++p, b += b_stride, next += step) {
    __builtin_prefetch(next, 0, 2);
    Vector right[kArray];
    ENGRAM_UNROLL(6)
    for (int v = 0; v < kWhole; ++v) right[v] = whole.load(b + v * kLanes);
    const auto last_right = last.load(b + kWhole * kLanes);
    ENGRAM_UNROLL(12)
    for (int row = 0; row < kRows; ++row) {
      const T factor = rows[row / kGroup][row % kGroup * a_row];
      ENGRAM_UNROLL(6)
      for (int v = 0; v < kWhole; ++v) sum[row][v] += factor * right[v];
      last_sum[row] += factor * last_right;
    }
    ENGRAM_UNROLL(4)
    for (int group = 0; group < kGroups; ++group) rows[group] += a_inner;
  }
  if (g.ahead != nullptr) g.ahead->fetched(depth);
  // Set adds to zeros, so that there is one form and no branch: where compilers make several ways of it, they multiply
  // and add in one instruction on some, and in two on others, and kinds of blocks would round differently.
  // Not static: a program and its modules for other processors would share one, of the shortest vectors.
  alignas(kVectorBytes) const T zeros[kVectors * kLanes] = {};
  const T* const before = g.write == Write::add ? g.c : zeros;
  const std::int64_t before_stride = g.write == Write::add ? g.c_stride : 0;
  ENGRAM_UNROLL(12)
  for (int row = 0; row < kRows; ++row) {
    const T* const from = before + row * before_stride;
    T* const to = g.c + row * g.c_stride;
    ENGRAM_UNROLL(6)
    for (int v = 0; v < kWhole; ++v)
      whole.store(whole.load(from + v * kLanes) + g.factor * sum[row][v], to + v * kLanes);
    last.store(last.load(from + kWhole * kLanes) + g.factor * last_sum[row], to + kWhole * kLanes);
  }
}

/// `rows` of them, at most kRows.
template <int kRows, int kVectors, class Last, class T>
void multiply_block_of(std::int64_t rows, const PieceProduct<T>& g, const Last& last) {
  if constexpr (kRows > 1)
    if (rows < kRows) return multiply_block_of<kRows - 1, kVectors>(rows, g, last);
  multiply_block<kRows, kVectors>(g, last);
}

/// One panel of columns over all rows, in blocks of nearly the same height.
template <int kVectors, class Last, class T>
void multiply_panel(PieceProduct<T> g, const Last& last) {
  constexpr int kMostRows = kSumsInRegisters / kVectors < 12 ? kSumsInRegisters / kVectors : 12;
  for (std::int64_t blocks = (g.m + kMostRows - 1) / kMostRows; blocks > 0; --blocks) {
    const std::int64_t rows = g.m / blocks;
    multiply_block_of<kMostRows, kVectors>(rows, g, last);
    g.m -= rows;
    g.a += rows * g.a_row;
    g.c += rows * g.c_stride;
    if (g.start != nullptr) g.start += rows;
  }
}

/// One panel of `vectors`, at least kVectors.
template <int kVectors = 1, class T>
void multiply_panel_of(int vectors, const PieceProduct<T>& g) {
  if constexpr (kVectors < kPanelVectors)
    if (vectors > kVectors) return multiply_panel_of<kVectors + 1>(vectors, g);
  constexpr std::int64_t kLanes = kVectorLanes<T>;
  const std::int64_t last = g.n - (kVectors - 1) * kLanes;
  if (last == kLanes) return multiply_panel<kVectors>(g, WholeVector<T>());
  if constexpr (kHalvesPay)
    if (last == kLanes / 2) return multiply_panel<kVectors>(g, HalfVector<T>());
  multiply_panel<kVectors>(g, PartVector<T>(last));
}

}  // namespace detail

/// On the calling thread.
template <class T>
void multiply_pieces(const PieceProduct<T>& g) {
  const std::int64_t parts = std::max<std::int64_t>(1, (g.k + g.part - 1) / g.part);
  const std::int64_t depth = std::max<std::int64_t>(1, (g.k + parts - 1) / parts);
  alignas(64) T turned[kProductDepth * kPanelColumns<T>];
  for (std::int64_t first = 0; first == 0 || first < g.k; first += depth)
    for (std::int64_t column = 0; column < g.n; column += kPanelColumns<T>) {
      PieceProduct<T> part = g;
      part.k = std::min(depth, g.k - first);
      part.n = std::min(kPanelColumns<T>, g.n - column);
      part.a += first * g.a_inner;
      if (g.b_transposed) {
        transpose_panel(g.b + column * g.b_stride + first, g.b_stride, part.n, part.k, turned);
        part.b = turned;
        part.b_stride = whole_vectors<T>(part.n);
      } else {
        part.b += first * g.b_stride + column / kPanelColumns<T> * g.b_panel;
      }
      part.c += column;
      if (first > 0) {
        part.write = Write::add;
        part.start = nullptr;
      }
      detail::multiply_panel_of(static_cast<int>(whole_vectors<T>(part.n) / kVectorLanes<T>), part);
    }
}

}  // namespace engram::cpu
