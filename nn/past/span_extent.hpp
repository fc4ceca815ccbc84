#pragma once
/// How much of the past a layer with spans computes and keeps.

#include <cstdint>

#include "core/backend.hpp"
#include "core/rules/head_windows.hpp"

namespace engram {

/// What windows are multiples of: 16 positions, and 64 on devices that work behind the host, where a captured step is
/// void as soon as a window changes.
inline std::int64_t window_unit(const Backend& backend) { return backend.works_behind() ? 64 : 16; }

/// Of one layer, now: spans move while it learns.
struct SpanExtent {
  HeadWindows windows;            ///< positions to compute for each head
  std::int64_t cache_length = 0;  ///< hidden states to keep for the next block
};

}  // namespace engram
