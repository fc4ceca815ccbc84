#pragma once
/// Between the packed past of core/kernels/past.hpp and plain arrays [B, window, D] of one head, oldest
/// position first. Written from the layout's description alone, so that a kernel's mistake cannot hide here.

#include <cstdint>

#include "core/kernels/past.hpp"
#include "tests/reference/array64.hpp"

namespace engram::harness {

/// Row of the packed past that holds the position `age` places after the oldest one of a head's window, for a ring
/// that `past_count` positions were appended to (0: no ring).
inline std::int64_t packed_row(const HeadWindows& windows, std::int64_t streams, std::int64_t stream, std::size_t head,
                               std::int64_t age, std::int64_t past_count) {
  const std::int64_t window = windows.window[head];
  return streams * windows.first[head] + stream * window + (past_count + age) % window;
}

/// [B total, D] -> [B, window, D] of one head; an absent array for a head without a past.
inline reference::Array64 unpacked_past(const reference::Array64& packed, const HeadWindows& windows,
                                        std::int64_t streams, std::size_t head, std::int64_t past_count) {
  if (windows.window[head] == 0) return {};
  reference::Array64 past = reference::zeros({streams, windows.window[head], packed.axis(1)});
  for (std::int64_t b = 0; b < streams; ++b)
    for (std::int64_t age = 0; age < past.axis(1); ++age)
      for (std::int64_t i = 0; i < past.axis(2); ++i)
        past.at(b, age, i) = packed.at(packed_row(windows, streams, b, head, age, past_count), i);
  return past;
}

/// The inverse: writes one head's rows of `packed`.
inline void pack_past(const reference::Array64& past, const HeadWindows& windows, std::size_t head,
                      std::int64_t past_count, reference::Array64& packed) {
  if (!past.given()) return;
  for (std::int64_t b = 0; b < past.axis(0); ++b)
    for (std::int64_t age = 0; age < past.axis(1); ++age)
      for (std::int64_t i = 0; i < past.axis(2); ++i)
        packed.at(packed_row(windows, past.axis(0), b, head, age, past_count), i) = past.at(b, age, i);
}

}  // namespace engram::harness
