#pragma once
/// How much of the past a layer with spans computes and keeps.

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/rules/head_windows.hpp"

namespace engram {

/// Windows, and the lengths of what is kept for them, come in steps, so that a span that moves a little changes neither
/// shapes nor addresses. They are multiples of 16, and of a power of two on devices that work behind the host: a
/// captured step is void as soon as one of them changes. So all windows of a run are few different ones there, however
/// spans move, and at most twice as long as they must be; what no head sees is still not computed by fused attention.
inline constexpr std::int64_t kWindowUnit = 16, kLeastCapturedWindow = 64;

/// How many positions to compute or to keep where `positions`, at least 1, are needed.
inline std::int64_t stepped_window(std::int64_t positions, bool captured) {
  if (!captured) return (positions + kWindowUnit - 1) / kWindowUnit * kWindowUnit;
  return std::max(kLeastCapturedWindow,
                  static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(positions))));
}

/// Of one layer, now: spans move while it learns.
struct SpanExtent {
  HeadWindows windows;            ///< positions to compute for each head
  std::int64_t seen = 0;          ///< of them, those that some head may see, in units of kWindowUnit
  std::int64_t cache_length = 0;  ///< hidden states to keep for the next block
};

}  // namespace engram
