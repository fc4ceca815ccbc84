#pragma once
/// Keys and values of past positions, packed as core/rules/head_windows.hpp says.

#include <cstdint>

#include "core/kernel.hpp"
#include "core/rules/head_windows.hpp"

namespace engram::kernels {

/// Projects the last window[h] of C cached states with head h's rows of two weights at once; positions before the first
/// cached one are zero vectors, so their projection is zero.
///   keys[streams first[h] + b window[h] + r, :] = key_weight[h D .. h D + D - 1, :] cache[b, C - window[h] + r, :]
/// and values likewise. cache: [B, C, n] (C may be 0); weights: [heads D, n]; keys, values: [B total, D]; one dtype:
/// f32, f64 or bf16.
inline constinit Kernel<void(const Tensor& cache, const Tensor& key_weight, const Tensor& value_weight,
                             const HeadWindows& windows, Tensor& keys, Tensor& values)>
    project_past_forward{"project_past_forward"};
/// dkey_weight (set or add) the sum over b and r of dkeys^T cache, B at least 1, and dvalue_weight likewise; the cache
/// is a constant. Gradients of bf16 operands are f32. A target may be empty, not wanted; then what it is made of may
/// be.
inline constinit Kernel<void(const Tensor& cache, const HeadWindows& windows, const Tensor& dkeys,
                             const Tensor& dvalues, const Target& dkey_weight, const Target& dvalue_weight)>
    project_past_backward{"project_past_backward"};

/// Writes the block into ring buffers of the packed layout: row (count + m) mod window[h] of head h, stream b gets
/// block[b, m, h D .. h D + D - 1] (of the last window[h] positions m). block: [B, M, heads D]; ring: [B total, D].
inline constinit Kernel<void(const Tensor& block, std::int64_t count, const HeadWindows& windows, Tensor& ring)>
    append_past{"append_past"};

/// The last C' positions of (cache, block) along time. cache: [B, C, n], C >= 0; block: [B, M, n]; y: [B, C', n] with
/// C' <= C + M, in other memory. When C' > C + M the front of y is zero. f32, f64, bf16, or i32.
inline constinit Kernel<void(const Tensor& cache, const Tensor& block, Tensor& y)> shift_cache{"shift_cache"};

}  // namespace engram::kernels
