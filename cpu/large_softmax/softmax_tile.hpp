#pragma once
/// A part of the vocabulary that stays in the second cache while a block of rows is met.

#include <cstdint>

#include "cpu/exponentials.hpp"

namespace engram::cpu {

template <class T>
struct SoftmaxTile {
  /// Symbols of a tile at most: whole register blocks, whole strips and whole parts of an inner axis.
  static constexpr std::int64_t kSymbols = 192;
  /// Rows that exponentials take together, and so rows of a block are rounded up to. May be more than a vector holds.
  static constexpr std::int64_t kLanes = sizeof(typename detail::ExponentialLanes<T>::Vector) / sizeof(T);

  const T* weight;     ///< [count, n]; the next tile's comes right after it
  T* logits;           ///< [count, lanes], and their gradients later; likewise
  std::int64_t lanes;  ///< rows of the block up to whole kLanes; logits of those beyond mean nothing
  std::int64_t count;  ///< symbols
  std::int64_t next;   ///< symbols of the tile that is met next, 0: there is none
};

}  // namespace engram::cpu
