#pragma once

#include <limits>

#include "autograd/variable.hpp"
#include "core/kernels/attention.hpp"

namespace engram {

/// The inputs of attention as variables; shapes and optional members as in AttentionInputs.
struct AttentionVariables {
  Variable content_query;   ///< [B, M, H D]
  Variable position_query;  ///< [B, M, H D], or absent: the content query
  Variable past_keys;       ///< [B windows.total, D], or absent
  Variable past_values;
  Variable keys;  ///< [B, M, H D]; absent when max_distance is 0
  Variable values;
  Variable position_keys;    ///< [P, D] or [P, H D], or absent
  Variable position_values;  ///< the same; it may be the variable of position_keys
  Variable slot_keys;        ///< [H, N, D], or absent
  Variable slot_values;
  Variable span;      ///< [H] or [B, M, H], or absent; f32 beside bf16 inputs, which would round it to many positions
  Tensor past_valid;  ///< [B] i32, or empty
};

struct AttentionResult {
  Variable out;  ///< [B, M, H D]
  Tensor lse;    ///< [B, H, M]: log of the sum of mask * exp(score), of the same dtype
  Tensor kept;   ///< the weights as attention_forward keeps them for the backward pass; empty when it keeps none
};

/// As `keep_bytes`: the weights are kept on every device, whatever they take, for who wants to see them.
inline constexpr std::int64_t kKeepWeights = std::numeric_limits<std::int64_t>::max();

/// Windowed attention with relative positions, adaptive spans and persistent slots: the definition is in
/// core/kernels/attention.hpp. Dropout is active on a training tape only. A training tape keeps the weights for the
/// backward pass when they take at most `keep_bytes`, else it computes them again, which takes about a sixth longer.
/// Throws ShapeError or DTypeError naming the input that does not fit.
AttentionResult attention(const AttentionVariables& inputs, const AttentionOptions& options,
                          std::int64_t keep_bytes = 0);

}  // namespace engram
