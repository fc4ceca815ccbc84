#pragma once
/// bfloat16 as a storage type: the upper half of an IEEE 754 binary32. Arithmetic happens in float.

#include <bit>
#include <cstdint>

#include "core/host_device.hpp"

namespace engram {

struct bf16 {
  std::uint16_t bits = 0;

  bf16() = default;
  /// Rounds to nearest, ties to even; a NaN stays a (quiet) NaN, overflow becomes infinity.
  ENGRAM_HD explicit constexpr bf16(float value) : bits(round(std::bit_cast<std::uint32_t>(value))) {}
  /// Exact.
  ENGRAM_HD explicit constexpr operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

 private:
  ENGRAM_HD static constexpr std::uint16_t round(std::uint32_t word) {
    if ((word & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((word >> 16) | 0x40u);
    return static_cast<std::uint16_t>((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
  }
};

static_assert(sizeof(bf16) == 2);
static_assert(bf16(1.0f).bits == 0x3f80 && static_cast<float>(bf16(-2.5f)) == -2.5f);
static_assert(bf16(1.00390625f).bits == 0x3f80, "a tie goes to the even mantissa");

}  // namespace engram
