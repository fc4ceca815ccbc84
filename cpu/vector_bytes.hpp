#pragma once

namespace engram::cpu {

/// Bytes of the vectors that this build's instructions work on; wider ones would go through memory.
#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kVectorBytes = 32;
#elif defined(__ARM_FEATURE_SVE_BITS) && __ARM_FEATURE_SVE_BITS > 0
inline constexpr int kVectorBytes = __ARM_FEATURE_SVE_BITS / 8;  // -msve-vector-bits=N tells the compiler
#else
inline constexpr int kVectorBytes = 16;
#endif

}  // namespace engram::cpu
