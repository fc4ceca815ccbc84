#pragma once
/// How products of f32 matrices read their operands. Everything else of f32 stays f32: parameters, gradients, sums.

#include <cstdint>
#include <string_view>

#include "core/names.hpp"

namespace engram {

enum class ProductPrecision : std::uint8_t {
  f32,
  bf16  ///< rounded to the nearest bf16, ties to even; products of two are exact in f32, in which they are summed
};
constexpr auto names_of(ProductPrecision) {
  return std::to_array<Named<ProductPrecision>>({{ProductPrecision::f32, "f32"}, {ProductPrecision::bf16, "bf16"}});
}

}  // namespace engram
