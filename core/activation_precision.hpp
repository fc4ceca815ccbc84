#pragma once
/// How a step stores what it computes between parameters and losses (docs/reference/numerics.md).

#include <cstdint>
#include <string_view>

#include "core/dtype.hpp"
#include "core/names.hpp"

namespace engram {

enum class ActivationPrecision : std::uint8_t {
  f32,  ///< in the dtype of the parameters, be it f32 or f64
  bf16  ///< mixed precision: activations, their gradients and the operands of products; sums and vectors stay f32
};
constexpr auto names_of(ActivationPrecision) {
  return std::to_array<Named<ActivationPrecision>>(
      {{ActivationPrecision::f32, "f32"}, {ActivationPrecision::bf16, "bf16"}});
}

/// Of the activations beside parameters of this dtype.
constexpr DType activation_dtype(ActivationPrecision precision, DType parameters) {
  return precision == ActivationPrecision::bf16 ? DType::bf16 : parameters;
}

}  // namespace engram
