#pragma once
/// Which distances a head sees and with what mask, as whole numbers that are computed once per block of threads: tiles
/// between them need no arithmetic of masks.

#include <cmath>

#include "cuda/attention/fused_attention_call.cuh"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

struct Band {
  int nearest;                    ///< smallest distance that is seen
  int visible;                    ///< largest one whose mask is not 0
  int full;                       ///< largest one whose mask is 1
  int corner_begin, corner_end;   ///< distances that pass gradient to the span: begin <= distance < end
  int edge;                       ///< whole part of the distance from which on the mask is 0
  float edge_part, per_position;  ///< its fraction; 1 / ramp

  template <class T>
  __device__ Band(const FusedCall<T>& call, const Place& place) {
    nearest = call.nearest;
    visible = full = place.window;
    corner_begin = corner_end = edge = 0;
    edge_part = per_position = 0;
    if (call.ramp == 0) return;
    // The mask of distance x + shift is (end - x) / ramp, clamped.
    const double end = call.ramp + static_cast<double>(call.span[place.head]) * call.longest;
    const double start = end - call.ramp;
    const int shift = 1 - call.mask_offset;
    per_position = 1.0f / static_cast<float>(call.ramp);
    if (!(std::abs(end) < 1e9)) {  // a span that is not finite must show in the output
      full = nearest - 1;
      edge_part = static_cast<float>(end - end);
      return;
    }
    edge = static_cast<int>(std::floor(end));
    edge_part = static_cast<float>(end - edge);
    const int below_start = static_cast<int>(std::floor(start)), below_end = end > edge ? edge : edge - 1;
    const bool at_start = static_cast<double>(below_start) == start;
    corner_begin = below_start + (at_start && call.ramp_gradient == RampGradient::inclusive ? 0 : 1) + shift;
    corner_end = (call.ramp_gradient == RampGradient::open ? below_end : edge) + 1 + shift;
    corner_begin = corner_begin < nearest ? nearest : corner_begin;
    corner_end = corner_end > place.window + 1 ? place.window + 1 : corner_end;
    visible = below_end + shift < visible ? below_end + shift : visible;
    full = below_start + shift < full ? below_start + shift : full;
    edge += shift;
  }

  /// Largest distance that the backward pass meets, and the largest up to which it needs neither masks nor corners.
  __device__ int farthest() const {
    return corner_end > corner_begin && corner_end - 1 > visible ? corner_end - 1 : visible;
  }
  __device__ int calm() const { return corner_end > corner_begin && corner_begin - 1 < full ? corner_begin - 1 : full; }
  __device__ bool is_corner(int distance) const { return distance >= corner_begin && distance < corner_end; }

  /// Of a distance from `nearest` to `visible`.
  __device__ float mask(int distance) const {
    return distance <= full ? 1.0f : (static_cast<float>(edge - distance) + edge_part) * per_position;
  }
};

/// Positions of the keys that at least one of some neighbouring queries sees: low <= position <= high.
struct KeyRange {
  int low, high;

  /// `farthest`: the largest distance that counts.
  template <class T>
  __device__ KeyRange(const FusedCall<T>& call, const Place& place, int farthest, int first_query, int queries) {
    const int end = first_query + queries < call.block ? first_query + queries : call.block;
    low = first_query - farthest > place.oldest ? first_query - farthest : place.oldest;
    high = end > first_query && farthest >= call.nearest ? end - 1 - call.nearest : low - 1;
  }
};

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
