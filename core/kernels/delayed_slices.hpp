#pragma once
/// Parts of a row, each from one step earlier than the part before: what an N-gram recurrent network reads.
/// [key-value-predict 1.5].

#include "core/kernel.hpp"
#include "core/rules/window_rule.hpp"

namespace engram::kernels {

/// y[b, t, i] = x[b, C + t - s, i] for i in part s, which is i in [s k / P, (s + 1) k / P), where position t - s
/// belongs to the sequence of t and is among the rows, else 0. x: [B, C + M, k]; y: [B, M, k], f32, f64 or, on devices
/// with bf16 activations, bf16; preceding: [B, M] i32. The rule has a window of P = parts and sees its own position;
/// parts divide k.
inline constinit Kernel<void(const Tensor& x, const Tensor& preceding, const WindowRule& rule, Tensor& y)>
    delayed_slices_forward{"delayed_slices_forward"};

/// dx[b, C + t - s, i] (set or add) dy[b, t, i] for i in part s where that was read; set: 0 elsewhere.
inline constinit Kernel<void(const Tensor& dy, const Tensor& preceding, const WindowRule& rule, const Target& dx)>
    delayed_slices_backward{"delayed_slices_backward"};

}  // namespace engram::kernels
