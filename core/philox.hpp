#pragma once
/// Philox4x32-10, a counter-based random function: four 32-bit numbers are a pure function of a 128-bit counter
/// and a 64-bit key. Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).

#include <array>
#include <cstdint>

#include "core/host_device.hpp"

namespace engram {

struct PhiloxBlock {
  std::uint32_t word[4];
};

/// Numbers for `counter` under `key` (low word first).
ENGRAM_HD constexpr PhiloxBlock philox(PhiloxBlock counter, std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53u} * counter.word[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57u} * counter.word[2];
    counter = {
        {static_cast<std::uint32_t>(product1 >> 32) ^ counter.word[1] ^ key0, static_cast<std::uint32_t>(product1),
         static_cast<std::uint32_t>(product0 >> 32) ^ counter.word[3] ^ key1, static_cast<std::uint32_t>(product0)}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

namespace philox_known_answers {  // of the authors' test vectors
constexpr bool matches(PhiloxBlock got, PhiloxBlock want) {
  for (int i = 0; i < 4; ++i)
    if (got.word[i] != want.word[i]) return false;
  return true;
}
static_assert(matches(philox({{0, 0, 0, 0}}, 0, 0), {{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}}));
static_assert(matches(philox({{0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu}}, 0xffffffffu, 0xffffffffu),
                      {{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}}));
}  // namespace philox_known_answers

}  // namespace engram
