#pragma once

#include "autograd/variable.hpp"

namespace engram {

/// What an N-gram recurrent network reads: a row is cut into `parts` equal parts, and part s (from 0) is taken from s
/// steps earlier: y[b, t, i] = x[b, C + t - s, i] for i in part s. Where that step belongs to an earlier sequence
/// (preceding[b, t] < s) or was not carried over (C + t < s), the part is zeros.
/// x: [B, C + M, k], C carried rows before those of the block; preceding: [B, M] i32, how many positions before this
/// one belong to its sequence, also those of earlier chunks. Result: [B, M, k]. Throws ShapeError, DTypeError or
/// DeviceError; `parts`, at least 1, must divide k. "Frustratingly Short Attention Spans in Neural Language Modeling"
/// (Daniluk et al. 2017), equation 21; [key-value-predict 1.5].
Variable delayed_slices(const Variable& x, const Tensor& preceding, std::int64_t parts);

}  // namespace engram
