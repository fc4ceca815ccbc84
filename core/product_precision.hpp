#pragma once
/// How products of f32 matrices read their operands. Everything else of f32 stays f32: parameters, gradients, sums.

#include <cstdint>
#include <string_view>

namespace engram {

enum class ProductPrecision : std::uint8_t {
  f32,
  bf16  ///< rounded to the nearest bf16, ties to even; products of two are exact in f32, in which they are summed
};

/// "f32" or "bf16".
constexpr std::string_view name_of(ProductPrecision precision) {
  return precision == ProductPrecision::bf16 ? "bf16" : "f32";
}

}  // namespace engram
