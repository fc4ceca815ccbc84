#pragma once
/// Inner products of rows of a table with gradients of results, over the columns that are held, in the order of
/// core/rules/table_columns.hpp: an item of work goes through rows that lie anywhere in memory, and asks for those that
/// come next. Parts are added up side by side, so that their lanes are summed side by side too.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "core/dtype.hpp"
#include "core/rules/table_columns.hpp"
#include "cpu/loop_hints.hpp"
#include "cpu/part_vectors.hpp"
#include "cpu/vector_bytes.hpp"

// Vectors that are wider than those of the processor are returned in memory. No two files need to agree on how: all of
// it happens in these functions. GCC warns at the end of the file that includes them, so this holds until there.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace engram::cpu {

namespace detail {

template <class C, int kCount>
struct DotVector {
  typedef C Type __attribute__((vector_size(sizeof(C) * kCount)));
  /// As it lies in memory, aligned as its numbers are.
  typedef C Stored __attribute__((vector_size(sizeof(C) * kCount), aligned(alignof(C)), may_alias));
};
template <class C, int kCount>
using DotLanes = typename DotVector<C, kCount>::Type;

/// kCount numbers from `from`, as C.
template <class C, int kCount, class T>
DotLanes<C, kCount> dot_lanes(const T* from) {
  if constexpr (std::is_same_v<T, bf16>) {
    static_assert(std::is_same_v<C, float>);
    using Bits = typename DotVector<std::uint16_t, kCount>::Stored;
    const auto bits = *reinterpret_cast<const Bits*>(from);
    const auto words = __builtin_convertvector(bits, DotLanes<std::uint32_t, kCount>) << 16;
    return std::bit_cast<DotLanes<C, kCount>>(words);
  } else {
    return *reinterpret_cast<const typename DotVector<C, kCount>::Stored*>(from);
  }
}
/// The numbers of `low`, then those of `high`.
template <class C, int kHalf, int... kLane>
DotLanes<C, 2 * kHalf> joined_lanes(const DotLanes<C, kHalf>& low, const DotLanes<C, kHalf>& high,
                                    std::integer_sequence<int, kLane...>) {
  return __builtin_shufflevector(low, high, kLane...);
}
/// The same as dot_lanes where there are `count` numbers, perhaps none, and zeros behind them. By halves, in registers:
/// what was put together in memory would be waited for.
template <class C, int kCount, class T>
DotLanes<C, kCount> first_dot_lanes(const T* from, std::int64_t count) {
  if (count >= kCount) return dot_lanes<C, kCount>(from);
  if constexpr (kCount > 4) {
    constexpr int kHalf = kCount / 2;
    DotLanes<C, kHalf> low = {}, high = {};
    if (count > 0) low = first_dot_lanes<C, kHalf>(from, count);
    if (count > kHalf) high = first_dot_lanes<C, kHalf>(from + kHalf, count - kHalf);
    return joined_lanes<C, kHalf>(low, high, std::make_integer_sequence<int, kCount>());
  } else {
    static_assert(kCount == 4);
    const auto number = [&](std::int64_t i) { return i < count ? static_cast<C>(from[i]) : C(0); };
    return DotLanes<C, 4>{number(0), number(1), number(2), C(0)};
  }
}

/// Lane i becomes the sum of lane i and lane i + half, until four are left.
template <class C, int kLanes>
DotLanes<C, 4> four_lanes(const DotLanes<C, kLanes>& lanes) {
  if constexpr (kLanes > 4) {
    const auto* const both = reinterpret_cast<const typename DotVector<C, kLanes / 2>::Stored*>(&lanes);
    // A sum of what is Stored would be aligned as that is.
    const DotLanes<C, kLanes / 2> sum = both[0] + both[1];
    return four_lanes<C, kLanes / 2>(sum);
  } else {
    return lanes;
  }
}

/// Sums of products in kLanes lanes: a vector of the processor, or two halves. An array of vectors would be cleared in
/// smaller pieces than it is read in.
template <class C, int kLanes, bool kOne = (kLanes <= 4 || kLanes * sizeof(C) <= kVectorBytes)>
struct DotSums {
  DotLanes<C, kLanes> lanes = {};

  template <class T, class D>
  void add(const T* a, const D* b) {
    lanes += dot_lanes<C, kLanes>(a) * dot_lanes<C, kLanes>(b);
  }
  template <class T, class D>
  void add(const T* a, const D* b, std::int64_t count) {
    lanes += first_dot_lanes<C, kLanes>(a, count) * first_dot_lanes<C, kLanes>(b, count);
  }
  void add(const DotSums& other) { lanes += other.lanes; }
  DotLanes<C, 4> four() const { return four_lanes<C, kLanes>(lanes); }
};
template <class C, int kLanes>
struct DotSums<C, kLanes, false> {
  static constexpr int kHalf = kLanes / 2;
  DotSums<C, kHalf> low, high;

  template <class T, class D>
  void add(const T* a, const D* b) {
    low.add(a, b);
    high.add(a + kHalf, b + kHalf);
  }
  template <class T, class D>
  void add(const T* a, const D* b, std::int64_t count) {
    low.add(a, b, count);
    high.add(a + kHalf, b + kHalf, count - kHalf);
  }
  void add(const DotSums& other) {
    low.add(other.low);
    high.add(other.high);
  }
  DotLanes<C, 4> four() const {
    DotSums<C, kHalf> sum = low;
    sum.add(high);
    return sum.four();
  }
};

/// The same until one is left, of the lanes of four parts.
template <class C>
void sum_lanes(const DotLanes<C, 4>* lanes, C* sums) {
  DotLanes<C, 4> two[2];  // lanes of two parts each
  for (int p = 0; p < 2; ++p)
    two[p] = __builtin_shufflevector(lanes[2 * p], lanes[2 * p + 1], 0, 1, 4, 5) +
             __builtin_shufflevector(lanes[2 * p], lanes[2 * p + 1], 2, 3, 6, 7);
  const DotLanes<C, 4> all =
      __builtin_shufflevector(two[0], two[1], 0, 2, 4, 6) + __builtin_shufflevector(two[0], two[1], 1, 3, 5, 7);
  *reinterpret_cast<typename DotVector<C, 4>::Stored*>(sums) = all;
}

/// The products of a part of `width` columns, which go to the lanes in turn. Asks for as many columns from `ahead_a`
/// and `ahead_b` on. Inline: parts of a dozen columns are over before a call.
template <int kLanes, class T, class D, class C = Compute<D>>
[[gnu::always_inline]] inline DotLanes<C, 4> dot_part(const T* a, const D* b, const T* ahead_a, const D* ahead_b,
                                                      std::int64_t width) {
  constexpr std::int64_t kLineOfA = 64 / static_cast<std::int64_t>(sizeof(T));
  constexpr std::int64_t kLineOfB = 64 / static_cast<std::int64_t>(sizeof(D));
  DotSums<C, kLanes> sums;
  std::int64_t begin = 0;
  for (; begin + 2 * kLanes <= width; begin += 2 * kLanes) {
    for (std::int64_t i = begin; i < begin + 2 * kLanes; i += kLineOfA)
      __builtin_prefetch(ahead_a + i, 0, kSecondCache);
    for (std::int64_t i = begin; i < begin + 2 * kLanes; i += kLineOfB)
      __builtin_prefetch(ahead_b + i, 0, kSecondCache);
    sums.add(a + begin, b + begin);
    sums.add(a + begin + kLanes, b + begin + kLanes);
  }
  if (begin == width) return sums.four();
  for (std::int64_t i = begin; i < width; i += kLineOfA) __builtin_prefetch(ahead_a + i, 0, kSecondCache);
  for (std::int64_t i = begin; i < width; i += kLineOfB) __builtin_prefetch(ahead_b + i, 0, kSecondCache);
  if (begin + kLanes <= width) {
    sums.add(a + begin, b + begin);
    begin += kLanes;
  }
  if (begin < width) sums.add(a + begin, b + begin, width - begin);
  return sums.four();
}

/// The sums of kParts parts, at most four, one after the other.
template <int kLanes, int kParts, class T, class D, class C>
void dot_parts(const T* a, const D* b, const T* ahead_a, const D* ahead_b, std::int64_t part, C* sums) {
  DotLanes<C, 4> lanes[4] = {};
  ENGRAM_UNROLL(4)
  for (int p = 0; p < kParts; ++p, a += part, b += part, ahead_a += part, ahead_b += part)
    lanes[p] = dot_part<kLanes>(a, b, ahead_a, ahead_b, part);
  sum_lanes<C>(lanes, sums);
}
template <int kLanes, class T, class D, class C>
C dot_all_parts(const T* a, const D* b, const T* ahead_a, const D* ahead_b, std::int64_t part, std::int64_t parts) {
  C sums[kMostColumnParts];
  switch (parts) {
    case 1:
      dot_parts<kLanes, 1>(a, b, ahead_a, ahead_b, part, sums);
      break;
    case 2:
      dot_parts<kLanes, 2>(a, b, ahead_a, ahead_b, part, sums);
      break;
    case 4:
      dot_parts<kLanes, 4>(a, b, ahead_a, ahead_b, part, sums);
      break;
    default:
      for (std::int64_t p = 0; p < kMostColumnParts; p += 4)
        dot_parts<kLanes, 4>(a + p * part, b + p * part, ahead_a + p * part, ahead_b + p * part, part, sums + p);
  }
  return sum_of_column_parts(sums, parts);
}

/// The same of parts that are no longer than a vector, which zeros fill up: lanes and pairs are those of 16, 8 or 4
/// columns, down to the last bit, as what is added to them is zero.
template <int kParts, class C>
C dot_short_parts(const C* a, const C* b, const C* ahead_a, const C* ahead_b, std::int64_t part) {
  constexpr int kLanes = static_cast<int>(kVectorLanes<C>);
  constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(C));
  // The last vector reaches into the line behind the row, which would be waited for.
  for (std::int64_t i = 0; i <= kParts * part; i += kLine) {
    __builtin_prefetch(ahead_a + i, 0, kSecondCache);
    __builtin_prefetch(ahead_b + i, 0, kSecondCache);
  }
  const PartVector<C> columns(part);
  DotLanes<C, 4> lanes[std::max(kParts, 4)] = {};
  C sums[kMostColumnParts];
  ENGRAM_UNROLL(8)
  for (int p = 0; p < kParts; ++p) {
    const auto products = columns.load(a + p * part) * columns.load(b + p * part) + C(0);  // no zero is -0 then
    lanes[p] = four_lanes<C, kLanes>(std::bit_cast<DotLanes<C, kLanes>>(products));
  }
  for (int p = 0; p < kParts; p += 4) sum_lanes<C>(lanes + p, sums + p);
  return sum_of_column_parts(sums, kParts);
}
template <class C>
C dot_short_parts(const C* a, const C* b, const C* ahead_a, const C* ahead_b, std::int64_t part, std::int64_t parts) {
  switch (parts) {
    case 1:
      return dot_short_parts<1>(a, b, ahead_a, ahead_b, part);
    case 2:
      return dot_short_parts<2>(a, b, ahead_a, ahead_b, part);
    case 4:
      return dot_short_parts<4>(a, b, ahead_a, ahead_b, part);
    default:
      return dot_short_parts<8>(a, b, ahead_a, ahead_b, part);
  }
}

}  // namespace detail

/// The sum of a[i] b[i] over `parts` parts of `part` columns each: of a part in 16 lanes, or 8 or 4 where it is
/// shorter, these pairwise, and of the parts by their tree. Asks for what lies at `ahead_a` and `ahead_b` as far as the
/// row goes.
template <class T, class D, class C = Compute<D>>
C dot_rows(const T* a, const D* b, const T* ahead_a, const D* ahead_b, std::int64_t part, std::int64_t parts) {
  // Where the first numbers of a vector take one instruction.
  if constexpr (kVectorBytes == 64 && std::is_same_v<T, C> && std::is_same_v<D, C>)
    if (part <= kVectorLanes<C>) return detail::dot_short_parts(a, b, ahead_a, ahead_b, part, parts);
  if (part >= 16) return detail::dot_all_parts<16, T, D, C>(a, b, ahead_a, ahead_b, part, parts);
  if (part >= 8) return detail::dot_all_parts<8, T, D, C>(a, b, ahead_a, ahead_b, part, parts);
  return detail::dot_all_parts<4, T, D, C>(a, b, ahead_a, ahead_b, part, parts);
}

}  // namespace engram::cpu
