#pragma once
/// The soft edge of an adaptive attention span, and the windows that follow from it. Sukhbaatar et al.: "Adaptive
/// Attention Span in Transformers" (2019), eq. 5; the trimming rule is the one of the adaptive-span models.

#include <algorithm>
#include <cmath>

#include "core/host_device.hpp"

namespace engram {

/// Before clamping: (ramp + span - x) / ramp, `span` and `x` in positions, x = distance - 1 (+ mask offset).
template <class T>
ENGRAM_HD T span_ramp(T span, T x, T ramp) {
  return (ramp + span - x) / ramp;
}
/// In [0, 1]: 1 up to the span, 0 from span + ramp on.
template <class T>
ENGRAM_HD T span_mask(T span, T x, T ramp) {
  const T raw = span_ramp(span, x, ramp);
  return raw < T(0) ? T(0) : raw > T(1) ? T(1) : raw;
}

/// How far a layer's attention is computed and how much of the past it keeps, all in positions.
struct SpanTrim {
  int size;    ///< positions with a nonzero mask: clamp(ceil(largest zeta S) + ramp, 0, S)
  int trim;    ///< positions that need not be computed, a multiple of 64
  int window;  ///< S - trim
  int cache;   ///< min(S, window + 64): spare positions, since a span may grow before the next block
};
/// `zeta` in [0, 1]: the largest of a layer (or of one head); S = max_span.
inline SpanTrim span_trim(double zeta, int max_span, int ramp) {
  const int size = std::clamp(static_cast<int>(std::ceil(zeta * max_span)) + ramp, 0, max_span);
  const int trim = 64 * (std::min(max_span - 1, max_span - size) / 64);
  const int window = max_span - trim;
  return {size, trim, window, std::min(max_span, window + 64)};
}

}  // namespace engram
