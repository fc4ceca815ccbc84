#pragma once
/// Rounding to bf16 whose mean is the number itself, so that updates far below the spacing of bf16 are not lost:
/// Gupta, Agrawal, Gopalakrishnan, Narayanan: "Deep learning with limited numerical precision" (ICML 2015), section 3.

#include <bit>
#include <cstdint>

#include "core/bf16.hpp"
#include "core/random_stream.hpp"
#include "core/rules/table_columns.hpp"

namespace engram {

/// Up with the probability (value - lower neighbour) / spacing, else down: `bits`, 16 uniform random bits, are added to
/// the part that bf16 drops. Infinities and NaN stay what they are.
ENGRAM_HD constexpr bf16 stochastically_rounded(float value, std::uint32_t bits) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  if ((word & 0x7f800000u) == 0x7f800000u) return bf16(value);
  bf16 rounded;
  rounded.bits = static_cast<std::uint16_t>((word + bits) >> 16);
  return rounded;
}

/// Where the random bits of a table's elements come from: the block of column c of row r has the number
/// r blocks_per_row + c / 8, and the element half-word c % 8 of it, as in DropoutRule. A function of seed, operation,
/// step, row and column of the whole table alone, whoever holds the column.
struct RoundingBlocks {
  std::int64_t per_row;
  std::int64_t first_column;  ///< of those that are held

  ENGRAM_HD explicit constexpr RoundingBlocks(const TableColumns& columns)
      : per_row((columns.whole + DropoutRule::kElementsPerBlock - 1) / DropoutRule::kElementsPerBlock),
        first_column(columns.begin) {}
  /// Of column `column` of those that are held.
  ENGRAM_HD constexpr std::uint64_t block(std::int64_t row, std::int64_t column) const {
    return static_cast<std::uint64_t>(row) * static_cast<std::uint64_t>(per_row) +
           static_cast<std::uint64_t>((first_column + column) / DropoutRule::kElementsPerBlock);
  }
  ENGRAM_HD constexpr int place(std::int64_t column) const {
    return static_cast<int>((first_column + column) % DropoutRule::kElementsPerBlock);
  }
};

}  // namespace engram
