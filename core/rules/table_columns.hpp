#pragma once
/// Columns of a table's rows, which several machines may share ([product-key 7.5]), and how sums over the columns of a
/// row are ordered, so that their bits do not depend on how many share them.

#include <cstdint>

#include "core/host_device.hpp"

namespace engram {

/// A row is cut into so many equal parts, or 4, 2 or 1 where no more divide its width. Each part is summed by itself,
/// and the parts' sums by a fixed tree: neighbours in pairs, level by level. Who holds 1, 2, 4 or 8 parts that follow
/// each other has a node of that tree.
inline constexpr std::int64_t kMostColumnParts = 8;
ENGRAM_HD constexpr std::int64_t column_parts(std::int64_t width) {
  std::int64_t parts = kMostColumnParts;
  while (width % parts != 0) parts /= 2;
  return parts;
}

/// The sum of that tree over `parts` numbers, which are used up: 1, 2, 4 or 8 of them.
template <class T>
ENGRAM_HD constexpr T sum_of_column_parts(T* sums, std::int64_t parts) {
  for (std::int64_t distance = 1; distance < parts; distance *= 2)
    for (std::int64_t i = 0; i + distance < parts; i += 2 * distance) sums[i] += sums[i + distance];
  return sums[0];
}

/// Which columns of a table [rows, whole] a tensor has: `count` from column `begin` on. Shared columns are whole parts.
struct TableColumns {
  std::int64_t begin = 0, count = 0;
  std::int64_t whole = 0;

  ENGRAM_HD static constexpr TableColumns all(std::int64_t width) { return {0, width, width}; }
  ENGRAM_HD constexpr bool are_all() const { return count == whole; }
  /// Columns of a part, and parts of these columns.
  ENGRAM_HD constexpr std::int64_t part() const { return whole / column_parts(whole); }
  ENGRAM_HD constexpr std::int64_t parts() const { return count == 0 ? 0 : count / part(); }
};

}  // namespace engram
