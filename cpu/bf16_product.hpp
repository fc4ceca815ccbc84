#pragma once
/// Products of f32 matrices whose operands are rounded to bf16, by the processor's own instructions: c (set or add)
/// factor round(a) round(b), sums in f32. Rounding and packing are one pass over an operand, which the products of
/// attention need as much as the multiplying itself; a library's product of bf16 matrices packs what was rounded
/// before.
///
/// A packed operand is a row of strips, a strip 16 rows of op(a) or 16 columns of op(b), a row of tiles of 32 places of
/// the inner axis each. A tile is 1 KiB, 16 rows of 16 pairs of neighbours on the inner axis: in a, rows are those of
/// op(a); in b a row is one pair of places, with its 16 columns. What lies beyond the matrix is zero.
///
/// Numbers are rounded to nearest, ties to even; f32 numbers below 2^-126, and products below it, count as zero.

#include <cstdint>

#include "core/bf16.hpp"
#include "cpu/gemm.hpp"

namespace engram::cpu {

/// What the processor multiplies bf16 numbers with.
enum class Bf16Instructions : std::uint8_t {
  none,
  vectors,  ///< AVX-512 BF16
  tiles     ///< AMX as well: products of whole tiles
};
/// The best that processor and system have; none where ENGRAM_CPU in the environment asks for a level below avx512
/// (instruction_level.hpp). Asks the system for the registers of tiles at the first call.
Bf16Instructions processor_bf16_instructions();
/// What is worth using of it: AVX-512 BF16 alone is not on Intel's processors, which finish one such instruction a
/// clock and two of f32, so that packing makes these products the slower ones; AMD's finish as many of either.
Bf16Instructions useful_bf16_instructions();
/// What these kernels can use, and what they do: the same where they are built for AVX-512, else none.
Bf16Instructions available_bf16_instructions();
Bf16Instructions bf16_instructions();
inline bool multiplies_bf16() { return bf16_instructions() != Bf16Instructions::none; }

/// Rows and inner places of a tile.
inline constexpr std::int64_t kTileRows = 16, kTileDepth = 32;

constexpr std::int64_t strips_of(std::int64_t rows) { return (rows + kTileRows - 1) / kTileRows; }
constexpr std::int64_t tiles_of_strip(std::int64_t depth) { return (depth + kTileDepth - 1) / kTileDepth; }
/// Elements of `rows` rows of op(a), or columns of op(b), packed.
constexpr std::int64_t packed_size(std::int64_t rows, std::int64_t depth) {
  return strips_of(rows) * tiles_of_strip(depth) * kTileRows * kTileDepth;
}

/// Packs strips [begin, end) of a product's operand to their place in `packed`, which is aligned to 64 bytes. These and
/// multiply_strips are only for processors that have the instructions (in builds for others they throw DeviceError).
void pack_a(const Gemm<float>& product, std::int64_t begin, std::int64_t end, bf16* packed);
void pack_b(const Gemm<float>& product, std::int64_t begin, std::int64_t end, bf16* packed);

/// Where a product finds the strips of b. It may be a part of a larger packed operand: strips from one of them on, or
/// tiles of the inner axis from one on, whose last one then has places beyond k. a's are zero there, so
/// what b has at them must be finite.
struct PackedB {
  const bf16* data = nullptr;  ///< nullptr: not packed
  std::int64_t strip = 0;      ///< elements between strips

  explicit operator bool() const { return data != nullptr; }
};

/// Strips of both packed operands, and so a rectangle of c.
struct StripRange {
  std::int64_t a_begin, a_end, b_begin, b_end;
};
/// The part of c that these strips make, on the calling thread, with k > 0. An element's sum has the same order in
/// all ranges that begin at even strips and end at even ones or at the last.
void multiply_strips(const Gemm<float>& product, const bf16* a, const PackedB& b, const StripRange& strips,
                     Bf16Instructions instructions = bf16_instructions());
/// The same with a b that was packed for this product.
inline void multiply_strips(const Gemm<float>& product, const bf16* a, const bf16* b, const StripRange& strips,
                            Bf16Instructions instructions = bf16_instructions()) {
  multiply_strips(product, a, PackedB{b, packed_size(kTileRows, product.k)}, strips, instructions);
}

}  // namespace engram::cpu
