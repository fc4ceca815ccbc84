#pragma once

#include <limits>

#include "autograd/variable.hpp"
#include "core/kernels/attention.hpp"

namespace engram {

struct AttentionVariables : AttentionOperands<Variable> {
  Tensor past_valid;  ///< [B] i32, or empty; see AttentionInputs
};

struct AttentionResult {
  Variable out;  ///< [B, M, H D]
  Tensor lse;    ///< [B, H, M]: log of the sum of mask * exp(score), of the same dtype
  Tensor kept;   ///< the weights as attention_forward keeps them for the backward pass; empty when it keeps none
};

/// As `keep_bytes`: the weights are kept on every device and tape, whatever they take, for who wants to see them.
inline constexpr std::int64_t kKeepWeights = std::numeric_limits<std::int64_t>::max();

/// Windowed attention with relative positions, adaptive spans and persistent slots: the definition is in
/// core/kernels/attention.hpp. Dropout is active on a training tape only. A training tape keeps the weights for the
/// backward pass when they take at most `keep_bytes`, else it computes them again, which takes about a sixth longer.
/// Throws ShapeError or DTypeError naming the input that does not fit.
AttentionResult attention(const AttentionVariables& inputs, const AttentionOptions& options,
                          std::int64_t keep_bytes = 0);

}  // namespace engram
