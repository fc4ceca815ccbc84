#pragma once
/// How a step stores what it computes between parameters and losses (docs/numerics.md).

#include <cstdint>
#include <string_view>

#include "core/dtype.hpp"

namespace engram {

enum class ActivationPrecision : std::uint8_t {
  f32,  ///< in the dtype of the parameters, be it f32 or f64
  bf16  ///< mixed precision: activations, their gradients and the operands of products; sums and vectors stay f32
};

/// "f32" or "bf16".
constexpr std::string_view name_of(ActivationPrecision precision) {
  return precision == ActivationPrecision::bf16 ? "bf16" : "f32";
}

/// Of the activations beside parameters of this dtype.
constexpr DType activation_dtype(ActivationPrecision precision, DType parameters) {
  return precision == ActivationPrecision::bf16 ? DType::bf16 : parameters;
}

}  // namespace engram
