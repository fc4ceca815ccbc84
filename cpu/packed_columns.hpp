#pragma once
/// A product's right side that is met again and again, as the weight of a recurrent layer is once per step: packed
/// once, panel by panel, as register_product.hpp reads it. A library's product packs it every time, which for a few
/// dozen rows on the left costs as much as multiplying.

#include <algorithm>
#include <cstdint>

#include "cpu/register_product.hpp"

namespace engram::cpu {

/// Where a column's elements are; nullptr: they are zero.
template <class T>
struct PackedColumn {
  const T* first;
  std::int64_t stride;
};

/// One panel: packed[p * kPanelColumns + c] = element p < depth of columns(c), aligned to whole vectors.
template <class T, class Columns>
void pack_columns(std::int64_t depth, T* packed, Columns&& columns) {
  // A line of a stored row at a time, whichever axis runs along it.
  constexpr std::int64_t kLine = 16;
  for (std::int64_t first = 0; first < depth; first += kLine) {
    const std::int64_t end = std::min(depth, first + kLine);
    for (std::int64_t c = 0; c < kPanelColumns<T>; ++c) {
      const PackedColumn<T> column = columns(c);
      for (std::int64_t p = first; p < end; ++p)
        packed[p * kPanelColumns<T> + c] = column.first == nullptr ? T(0) : column.first[p * column.stride];
    }
  }
}

}  // namespace engram::cpu
