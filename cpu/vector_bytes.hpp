#pragma once

namespace engram::cpu {

/// Bytes of the vectors that this build's instructions work on; wider ones would go through memory.
#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

}  // namespace engram::cpu
