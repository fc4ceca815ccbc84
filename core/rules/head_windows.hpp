#pragma once
/// How far each head looks back, and where the keys and values of past positions lie, each head keeping as many as its
/// own window reaches back. The layout serves training (projections of the cached hidden states) and evaluation (ring
/// buffers) alike.

#include <cstdint>
#include <vector>

#include "core/shared_array.hpp"

namespace engram {

/// Window of every head: how many positions before the present one it may look at. Host data, an upper bound of
/// what the span on the device needs; refreshed between steps, so that no kernel waits for the host.
///
/// A packed past has shape [streams * total, depth]: head h owns streams * window[h] rows, starting at row
/// streams * first[h]; of these, stream b owns window[h] rows, oldest position first (or a ring of them).
struct HeadWindows {
  SharedArray<std::int32_t> window;
  SharedArray<std::int64_t> first;  ///< sum of the windows of the heads before
  std::int64_t total = 0;           ///< sum of all windows
  std::int32_t longest = 0;

  HeadWindows() = default;
  explicit HeadWindows(std::vector<std::int32_t> windows);
  int heads() const { return static_cast<int>(window.size()); }
  friend bool operator==(const HeadWindows&, const HeadWindows&) = default;
};

}  // namespace engram
