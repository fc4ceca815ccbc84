#include "core/dtype.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "tests/harness/catch.hpp"

namespace engram::dtype_test {
namespace {

TEST_CASE("dtype: names, sizes, parsing", "[core]") {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i32, DType::i64})
    CHECK(parse_dtype(name_of(dtype)) == dtype);
  CHECK(size_of(DType::f32) == 4);
  CHECK(size_of(DType::f64) == 8);
  CHECK(size_of(DType::bf16) == 2);
  CHECK(size_of(DType::i32) == 4);
  CHECK(size_of(DType::i64) == 8);
  CHECK(is_integer(DType::i32));
  CHECK(is_integer(DType::i64));
  CHECK_FALSE(is_integer(DType::bf16));
  CHECK_THROWS_AS(parse_dtype("f16"), UsageError);
  CHECK_THROWS_WITH(parse_dtype("F32"), "dtype: must be f32, f64, bf16, i32 or i64, got 'F32'");
  CHECK(dtype_of<const float> == DType::f32);
}

TEST_CASE("dtype: dispatch reaches computing types and refuses the others", "[core]") {
  const auto size = [](DType dtype) { return dispatch_float(dtype, "op", []<class T>() { return sizeof(T); }); };
  CHECK(size(DType::f32) == 4);
  CHECK(size(DType::f64) == 8);
  CHECK_THROWS_AS(size(DType::bf16), DTypeError);
  CHECK_THROWS_WITH(size(DType::i32), "op: needs f32 or f64, got i32");
}

TEST_CASE("bf16: all 65536 values survive the way through float", "[core]") {
  int wrong = 0, nans = 0;
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    bf16 value;
    value.bits = static_cast<std::uint16_t>(bits);
    const auto wide = static_cast<float>(value);
    const bf16 back(wide);
    if (std::isnan(wide)) {
      ++nans;
      // Signalling NaNs become quiet, and stay NaN.
      wrong += back.bits != (bits | 0x40u);
    } else {
      wrong += back.bits != bits;
    }
  }
  CHECK(wrong == 0);
  CHECK(nans == 2 * 127);
}

// The definition, by search instead of by bit tricks: the nearer neighbour, the even one of two equally near.
std::uint16_t nearest_bf16(float value) {
  const auto below = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
  const auto above = static_cast<std::uint16_t>(below + 1);
  const auto wide = [](std::uint16_t bits) { return double{std::bit_cast<float>(std::uint32_t{bits} << 16)}; };
  const double down = std::abs(double{value} - wide(below)), up = std::abs(wide(above) - double{value});
  if (down != up) return down < up ? below : above;
  return below % 2 == 0 ? below : above;
}

TEST_CASE("bf16: rounds to nearest, ties to even", "[core]") {
  CHECK(bf16(1.0f).bits == 0x3f80);
  CHECK(bf16(1.0f + 1 / 256.0f).bits == 0x3f80);      // a tie: down to the even mantissa
  CHECK(bf16(1.0f + 3 / 256.0f).bits == 0x3f82);      // a tie: up to the even mantissa
  CHECK(bf16(1.0f + 1.01f / 256.0f).bits == 0x3f81);  // just above the tie
  CHECK(bf16(-1.0f - 3 / 256.0f).bits == 0xbf82);
  int wrong = 0;
  for (std::uint32_t upper = 0; upper < 0x7f7fu; upper += 7)
    for (const std::uint32_t lower : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      for (const std::uint32_t sign : {0u, 0x80000000u}) {
        const auto value = std::bit_cast<float>(sign | upper << 16 | lower);
        wrong += bf16(value).bits != nearest_bf16(value);
      }
  CHECK(wrong == 0);
}

TEST_CASE("bf16: overflow, infinity and NaN", "[core]") {
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(bf16(infinity).bits == 0x7f80);
  CHECK(bf16(-infinity).bits == 0xff80);
  CHECK(bf16(std::numeric_limits<float>::max()).bits == 0x7f80);
  CHECK(std::isnan(static_cast<float>(bf16(std::numeric_limits<float>::quiet_NaN()))));
  // A NaN whose payload lies in the lower half only must not become infinity.
  CHECK(std::isnan(static_cast<float>(bf16(std::bit_cast<float>(0x7f800001u)))));
  CHECK(bf16(-0.0f).bits == 0x8000);
}

}  // namespace
}  // namespace engram::dtype_test
