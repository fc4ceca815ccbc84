#pragma once
/// Weighted sums of rows that lie anywhere in memory. Where the next rows lie is known, so all of their lines are asked
/// for while those before are added up: a row is no longer waited for once per line, and not once per page
/// ([product-key 7.3]).

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "core/dtype.hpp"
#include "cpu/loop_hints.hpp"

namespace engram::cpu {

/// How many rows are taken at once, and of what is left after that: the sum is read and written once for all of them.
inline constexpr int kRowsAtOnce = 16, kFewRowsAtOnce = 4;

/// How many rows ahead memory is asked for, by the bytes of a row: some 128 KiB, at least the next group.
constexpr std::int64_t rows_ahead(std::int64_t row_bytes) {
  return std::clamp<std::int64_t>((128 << 10) / std::max<std::int64_t>(1, row_bytes), kRowsAtOnce, 64);
}

namespace detail {

/// a b + c, rounded once where the processor can: said in so many words, because a compiler that chooses may choose
/// otherwise for what is left of a row, whose sums then depend on where the row was cut.
template <class C>
C multiply_add(C a, C b, C c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return std::fma(a, b, c);
#else
  return a * b + c;
#endif
}

/// sum[i] (`kFirst`: =, else +=) weights[0] rows[0][i] + ..., one after the other; `ahead` are rows to ask for.
template <int kRows, bool kFirst, class T, class C>
void add_scaled_rows(const T* const (&rows)[kRows], const C (&weights)[kRows], const T* const (&ahead)[kRows],
                     C* __restrict sum, std::int64_t width) {
  constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(T));
  std::int64_t begin = 0;
  for (; begin + kLine <= width; begin += kLine) {
    for (int row = 0; row < kRows; ++row) __builtin_prefetch(ahead[row] + begin, 0, kSecondCache);
    // One loop over the line's numbers becomes vector instructions; unrolled first, it would not.
    ENGRAM_INDEPENDENT
    ENGRAM_UNROLL(1)
    for (std::int64_t i = begin; i < begin + kLine; ++i) {
      C value = kFirst ? C(0) : sum[i];
      ENGRAM_UNROLL(16)
      for (int row = 0; row < kRows; ++row) value = multiply_add(weights[row], static_cast<C>(rows[row][i]), value);
      sum[i] = value;
    }
  }
  if (begin == width) return;
  for (int row = 0; row < kRows; ++row) __builtin_prefetch(ahead[row] + width - 1, 0, kSecondCache);
  for (std::int64_t i = begin; i < width; ++i) {
    C value = kFirst ? C(0) : sum[i];
    for (int row = 0; row < kRows; ++row) value = multiply_add(weights[row], static_cast<C>(rows[row][i]), value);
    sum[i] = value;
  }
}

template <int kRows, bool kFirst, class Terms, class C>
void add_terms(const Terms& terms, std::int64_t first, std::int64_t ahead, std::int64_t last, C* sum,
               std::int64_t width) {
  using T = typename Terms::Element;
  const T* rows[kRows];
  const T* next[kRows];
  C weights[kRows];
  for (int k = 0; k < kRows; ++k) {
    rows[k] = terms.row(first + k);
    weights[k] = terms.weight(first + k);
    next[k] = terms.row(std::min(first + k + ahead, last));
  }
  add_scaled_rows<kRows, kFirst>(rows, weights, next, sum, width);
}

}  // namespace detail

/// sum[0, width) = terms.weight(i) times the row at terms.row(i), added up in order of i for begin <= i < end, from
/// zero. Terms: the type Element of a row's numbers, row(i) and weight(i). Terms up to `last`, which is at least
/// end - 1, will be read next: their rows are asked for, `ahead` terms before they are.
template <class Terms, class C>
void sum_scaled_rows(const Terms& terms, std::int64_t begin, std::int64_t end, std::int64_t last, std::int64_t ahead,
                     C* sum, std::int64_t width) {
  if (begin >= end) {
    std::fill_n(sum, width, C(0));
    return;
  }
  std::int64_t i = begin;
  const auto take = [&]<int kRows>(std::integral_constant<int, kRows>) {
    for (; i + kRows <= end; i += kRows) {
      if (i == begin)
        detail::add_terms<kRows, true>(terms, i, ahead, last, sum, width);
      else
        detail::add_terms<kRows, false>(terms, i, ahead, last, sum, width);
    }
  };
  take(std::integral_constant<int, kRowsAtOnce>());
  take(std::integral_constant<int, kFewRowsAtOnce>());
  take(std::integral_constant<int, 1>());
}

}  // namespace engram::cpu
