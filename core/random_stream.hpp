#pragma once
/// Randomness of one operation: the numbers are a function of (seed, operation id, step, element), so a
/// backward pass, another tiling or another device draws the same ones without storing them.

#include <cmath>
#include <cstdint>

#include "core/philox.hpp"
#include "core/step_scalars.hpp"

namespace engram {

struct RandomStream {
  std::uint64_t seed = 0;
  std::uint32_t operation = 0;           ///< running number inside the step, set by Step::next_random
  const StepScalars* scalars = nullptr;  ///< device memory

  /// Four numbers for block number `block` of this operation in the present step.
  ENGRAM_HD PhiloxBlock draw(std::uint64_t block) const { return draw(block, scalars->step, scalars->piece); }
  /// Four numbers of a step and piece that were read before, for inner loops.
  ENGRAM_HD PhiloxBlock draw(std::uint64_t block, std::uint64_t step, std::uint32_t piece) const {
    return philox({{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32) ^ (piece << 16),
                    operation, static_cast<std::uint32_t>(step)}},
                  static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
  }
};

/// Dropout by integer comparison: every Philox block decides for eight elements, 16 bits each, so that all
/// devices agree exactly. Element i uses block i / 8, half-word i % 8.
struct DropoutRule {
  std::uint32_t threshold = 0;  ///< an element is kept when its 16 bits are >= threshold
  double multiplier = 1;        ///< what kept elements are multiplied by: 1 / (share kept)

  /// A rate from here on would be rounded to 1: everything would be dropped.
  static constexpr double kRateLimit = 1 - 0.5 / 65536;

  DropoutRule() = default;
  /// `rate` in [0, kRateLimit): the share that is dropped, rounded to 1/65536.
  explicit DropoutRule(double rate)
      : threshold(static_cast<std::uint32_t>(std::lround(rate * 65536))), multiplier(65536.0 / (65536.0 - threshold)) {}

  static constexpr int kElementsPerBlock = 8;
  ENGRAM_HD static constexpr std::uint32_t bits_of(const PhiloxBlock& block, int element) {
#if defined(__CUDA_ARCH__)
    // Selected: an array with an index that the compiler does not know would lie in the card's memory.
    const std::uint32_t low = (element & 2) == 0 ? block.word[0] : block.word[1];
    const std::uint32_t high = (element & 2) == 0 ? block.word[2] : block.word[3];
    const std::uint32_t word = (element & 4) == 0 ? low : high;
#else
    const std::uint32_t word = block.word[element >> 1];
#endif
    return (word >> ((element & 1) * 16)) & 0xffffu;
  }
  ENGRAM_HD constexpr bool keeps(const PhiloxBlock& block, int element) const {
    return bits_of(block, element) >= threshold;
  }
  bool active() const { return threshold > 0; }
};

}  // namespace engram
