#pragma once
/// Keys and values of past positions, each head keeping as many as its own window reaches back. The layout serves
/// training (projections of the cached hidden states) and evaluation (ring buffers) alike.

#include <cstdint>
#include <vector>

#include "core/kernel.hpp"
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

namespace kernels {

/// Projects the last window[h] of C cached states with head h's rows of `weight`; positions before the first cached
/// one are zero vectors, so their projection is zero.
///   y[streams first[h] + b window[h] + r, :] = weight[h D .. h D + D - 1, :] cache[b, C - window[h] + r, :]
/// cache: [B, C, n] (C may be 0); weight: [heads D, n]; y: [B total, D]; one dtype: f32, f64 or bf16.
inline constinit Kernel<void(const Tensor& cache, const Tensor& weight, const HeadWindows& windows, Tensor& y)>
    project_past_forward{"project_past_forward"};
/// dweight (set or add) the sum over b and r of dy^T cache; the cache is a constant. dweight of bf16 operands is f32.
inline constinit Kernel<void(const Tensor& cache, const HeadWindows& windows, const Tensor& dy, Tensor& dweight,
                             Write write)>
    project_past_backward{"project_past_backward"};

/// Writes the block into ring buffers of the packed layout: row (count + m) mod window[h] of head h, stream b gets
/// block[b, m, h D .. h D + D - 1] (of the last window[h] positions m). block: [B, M, heads D]; ring: [B total, D].
inline constinit Kernel<void(const Tensor& block, std::int64_t count, const HeadWindows& windows, Tensor& ring)>
    append_past{"append_past"};

/// The last C' positions of (cache, block) along time. cache: [B, C, n], C >= 0; block: [B, M, n]; y: [B, C', n] with
/// C' <= C + M, in other memory. When C' > C + M the front of y is zero. f32, f64, bf16, or i32.
inline constinit Kernel<void(const Tensor& cache, const Tensor& block, Tensor& y)> shift_cache{"shift_cache"};

}  // namespace kernels
}  // namespace engram
