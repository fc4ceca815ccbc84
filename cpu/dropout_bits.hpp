#pragma once
/// The multipliers of dropout, element by element: the rule of core/random_stream.hpp over many blocks at once.
/// The numbers are those of RandomStream::draw, bit for bit; only the order of the work differs.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "core/random_stream.hpp"
#include "cpu/philox_lanes.hpp"

namespace engram::cpu {

namespace detail {

template <int kVectors>
inline constexpr std::int64_t kDropoutBatch = kVectors* kPhiloxLanes* DropoutRule::kElementsPerBlock;

/// Writes a batch that starts `skipped` < 8 elements before out[0], cut to `count`; returns how many were written.
template <int kVectors, class T>
inline std::int64_t dropout_batch(const PhiloxConstants& constants, const DropoutRule& rule, std::uint64_t first_block,
                                  std::int64_t skipped, std::int64_t count, T* out) {
  static_assert(std::endian::native == std::endian::little, "half-word i of a block is the i-th 16 bits in memory");
  constexpr std::int64_t kBatch = kDropoutBatch<kVectors>;
  alignas(64) std::uint64_t words[kBatch / 4];
  alignas(64) std::uint16_t bits[kBatch];
  philox_blocks<kVectors>(constants, first_block, words);
  std::memcpy(bits, words, sizeof bits);
  const std::uint32_t threshold = rule.threshold;
  const T multiplier = static_cast<T>(rule.multiplier);
  const auto expand = [&](const std::uint16_t* from, std::int64_t elements) {
    for (std::int64_t i = 0; i < elements; ++i) out[i] = std::uint32_t{from[i]} >= threshold ? multiplier : T(0);
  };
  if (skipped == 0 && count >= kBatch) {
    expand(bits, kBatch);  // a constant count: no remainder loop
    return kBatch;
  }
  const std::int64_t taken = std::min(count, kBatch - skipped);
  expand(bits + skipped, taken);
  return taken;
}

}  // namespace detail

/// out[i] = rule.multiplier when element first_element + i of the stream is kept, else 0; 0 <= i < count. T is float or
/// double. Any first element will do. Fastest for 256 elements and more; up to 64 cost about the same as 64.
template <class T>
void dropout_multipliers(const RandomStream& random, const DropoutRule& rule, std::uint64_t first_element,
                         std::int64_t count, T* out) {
  const PhiloxConstants constants{
      random.scalars->piece << 16, random.operation, static_cast<std::uint32_t>(random.scalars->step),
      static_cast<std::uint32_t>(random.seed), static_cast<std::uint32_t>(random.seed >> 32)};
  while (count > 0) {
    const std::uint64_t block = first_element / DropoutRule::kElementsPerBlock;
    const auto skipped = static_cast<std::int64_t>(first_element % DropoutRule::kElementsPerBlock);
    std::int64_t written = 0;
    if (skipped + count > detail::kDropoutBatch<2>)
      written = detail::dropout_batch<4>(constants, rule, block, skipped, count, out);
    else if (skipped + count > detail::kDropoutBatch<1>)
      written = detail::dropout_batch<2>(constants, rule, block, skipped, count, out);
    else
      written = detail::dropout_batch<1>(constants, rule, block, skipped, count, out);
    out += written;
    first_element += static_cast<std::uint64_t>(written);
    count -= written;
  }
}

}  // namespace engram::cpu
