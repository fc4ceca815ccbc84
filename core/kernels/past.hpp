#pragma once
/// Keys and values of past positions, packed as core/rules/head_windows.hpp says.

#include <cstdint>

#include "core/kernel.hpp"
#include "core/rules/head_windows.hpp"

namespace engram::kernels {

/// Projects the last window[h] of C cached states with head h's rows of `weight`; positions before the first cached
/// one are zero vectors, so their projection is zero.
///   y[streams first[h] + b window[h] + r, :] = weight[h D .. h D + D - 1, :] cache[b, C - window[h] + r, :]
/// cache: [B, C, n] (C may be 0); weight: [heads D, n]; y: [B total, D]; one dtype: f32, f64 or bf16.
inline constinit Kernel<void(const Tensor& cache, const Tensor& weight, const HeadWindows& windows, Tensor& y)>
    project_past_forward{"project_past_forward"};
/// dweight (set or add) the sum over b and r of dy^T cache, B at least 1; the cache is a constant. dweight of bf16
/// operands is f32.
inline constinit Kernel<void(const Tensor& cache, const HeadWindows& windows, const Tensor& dy, const Target& dweight)>
    project_past_backward{"project_past_backward"};

/// Writes the block into ring buffers of the packed layout: row (count + m) mod window[h] of head h, stream b gets
/// block[b, m, h D .. h D + D - 1] (of the last window[h] positions m). block: [B, M, heads D]; ring: [B total, D].
inline constinit Kernel<void(const Tensor& block, std::int64_t count, const HeadWindows& windows, Tensor& ring)>
    append_past{"append_past"};

/// The last C' positions of (cache, block) along time. cache: [B, C, n], C >= 0; block: [B, M, n]; y: [B, C', n] with
/// C' <= C + M, in other memory. When C' > C + M the front of y is zero. f32, f64, bf16, or i32.
inline constinit Kernel<void(const Tensor& cache, const Tensor& block, Tensor& y)> shift_cache{"shift_cache"};

}  // namespace engram::kernels
