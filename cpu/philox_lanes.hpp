#pragma once
/// Philox4x32-10 (core/philox.hpp) for many counters at once. A 64-bit lane holds one 32-bit word, its upper half
/// is garbage: the multiplication ignores it, so that a round is two products, two shifts and four exclusive ors. This
/// is the one place that names instructions, because g++ does not find the 32 x 32 -> 64 bit product by itself.

#include <cstdint>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "cpu/vector_bytes.hpp"

namespace engram::cpu {

inline constexpr int kPhiloxLanes = kVectorBytes / 8;
/// One word of kPhiloxLanes counters, in the lower half of each lane.
using PhiloxLanes = std::uint64_t __attribute__((vector_size(kVectorBytes)));

/// product = the full products of the lower halves of a and b.
inline void multiply_low_halves(const PhiloxLanes& a, const PhiloxLanes& b, PhiloxLanes& product) {
#if defined(__AVX512F__)
  // The masked form: g++ 12 warns of an uninitialised variable inside the plain one.
  product = reinterpret_cast<PhiloxLanes>(
      _mm512_maskz_mul_epu32(0xff, reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#elif defined(__AVX2__)
  product = reinterpret_cast<PhiloxLanes>(_mm256_mul_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
#else
  product = (a & 0xffffffffu) * (b & 0xffffffffu);
#endif
}

/// The parts of counter and key that all blocks of an operation share within a step; see RandomStream::draw.
struct PhiloxConstants {
  std::uint32_t piece, operation, step, key0, key1;  ///< piece: already shifted to its place in word 1
};

/// words[2 i] and words[2 i + 1] of block number first_block + i, 0 <= i < kVectors * kPhiloxLanes: words 0 and 1 of
/// philox() in one number, words 2 and 3 in the next, the lower word in the lower half. Several vectors at once keep
/// the multipliers busy.
template <int kVectors>
inline void philox_blocks(const PhiloxConstants& constants, std::uint64_t first_block, std::uint64_t* words) {
  const PhiloxLanes zero = {};
  const PhiloxLanes factor0 = zero + 0xD2511F53u;
  const PhiloxLanes factor1 = zero + 0xCD9E8D57u;
  PhiloxLanes word0[kVectors], word1[kVectors], word2[kVectors], word3[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    PhiloxLanes block = zero;
    for (int lane = 0; lane < kPhiloxLanes; ++lane)
      block[lane] = first_block + static_cast<std::uint64_t>(v * kPhiloxLanes + lane);
    word0[v] = block;
    word1[v] = (block >> 32) ^ constants.piece;
    word2[v] = zero + constants.operation;
    word3[v] = zero + constants.step;
  }
  std::uint32_t key0 = constants.key0, key1 = constants.key1;
  for (int round = 0; round < 10; ++round) {
    for (int v = 0; v < kVectors; ++v) {
      PhiloxLanes product0, product1;
      multiply_low_halves(word0[v], factor0, product0);
      multiply_low_halves(word2[v], factor1, product1);
      word0[v] = (product1 >> 32) ^ word1[v] ^ (zero + key0);
      word1[v] = product1;
      word2[v] = (product0 >> 32) ^ word3[v] ^ (zero + key1);
      word3[v] = product0;
    }
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  for (int v = 0; v < kVectors; ++v) {
    const PhiloxLanes even = (word1[v] << 32) | (word0[v] & 0xffffffffu);
    const PhiloxLanes odd = (word3[v] << 32) | (word2[v] & 0xffffffffu);
    for (int lane = 0; lane < kPhiloxLanes; ++lane) {
      words[2 * (v * kPhiloxLanes + lane)] = even[lane];
      words[2 * (v * kPhiloxLanes + lane) + 1] = odd[lane];
    }
  }
}

}  // namespace engram::cpu
