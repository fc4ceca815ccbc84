#pragma once
/// Several neighbouring elements in one access: 16 bytes is the most that a card moves at once per thread. Elements of
/// bf16 are f32 in registers: loads convert, stores round to nearest.

#include <bit>
#include <cstdint>
#include <type_traits>

#include "core/dtype.hpp"
#include "cuda/launch.hpp"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// Beside bf16, f32 come eight at a time: in two accesses.
template <class T, int kWidth>
struct alignas(sizeof(T) * kWidth < 16 ? sizeof(T) * kWidth : 16) Pack {
  T value[kWidth];
};

/// Elements of one access of 16 bytes.
template <class T>
inline constexpr int kPackWidth = 16 / static_cast<int>(sizeof(T));

/// All of V in one access, from memory that is aligned to it.
template <class V>
__device__ __forceinline__ V load_as(const void* from) {
#if defined(ENGRAM_CUDA_SIMULATED)
  return simulated::load_whole<V>(from);
#else
  return *static_cast<const V*>(from);
#endif
}
template <class V>
__device__ __forceinline__ void store_as(void* to, const V& value) {
#if defined(ENGRAM_CUDA_SIMULATED)
  simulated::store_whole<V>(to, value);
#else
  *static_cast<V*>(to) = value;
#endif
}

/// Pairs of bf16, the first in the lower half: compilers for cards take an access to 16-bit members apart.
template <int kWords>
struct alignas(4 * kWords) [[gnu::may_alias]] Words {
  std::uint32_t value[kWords];
};
__device__ __forceinline__ std::uint32_t rounded_pair(float first, float second) {
#if defined(__CUDA_ARCH__)
  std::uint32_t pair = 0;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
#else
  return bf16(first).bits | std::uint32_t{bf16(second).bits} << 16;
#endif
}

template <class T, int kWidth>
inline constexpr bool kInPairs = std::is_same_v<T, bf16>&& kWidth % 2 == 0;

/// kWidth elements from `from`, which must be aligned to all of them, or to 16 bytes.
template <int kWidth, class T>
__device__ __forceinline__ Pack<Compute<T>, kWidth> load(const T* from) {
  if constexpr (kInPairs<T, kWidth>) {
    const auto words = load_as<Words<kWidth / 2>>(from);
    Pack<float, kWidth> pack;
    for (int j = 0; j < kWidth / 2; ++j) {
      pack.value[2 * j] = std::bit_cast<float>(words.value[j] << 16);
      pack.value[2 * j + 1] = std::bit_cast<float>(words.value[j] & 0xffff0000u);
    }
    return pack;
  } else if constexpr (std::is_same_v<T, bf16>) {
    return {{static_cast<float>(*from)}};
  } else {
    return load_as<Pack<T, kWidth>>(from);
  }
}
template <int kWidth, class T>
__device__ __forceinline__ void store(T* to, const Pack<Compute<T>, kWidth>& pack) {
  if constexpr (kInPairs<T, kWidth>) {
    Words<kWidth / 2> words;
    for (int j = 0; j < kWidth / 2; ++j) words.value[j] = rounded_pair(pack.value[2 * j], pack.value[2 * j + 1]);
    store_as(to, words);
  } else if constexpr (std::is_same_v<T, bf16>) {
    *to = bf16(pack.value[0]);
  } else {
    store_as(to, pack);
  }
}
/// The numbers that load() finds after store().
template <class T, int kWidth>
__device__ __forceinline__ Pack<Compute<T>, kWidth> as_stored(Pack<Compute<T>, kWidth> pack) {
  if constexpr (std::is_same_v<T, bf16>)
    for (int j = 0; j < kWidth; ++j) pack.value[j] = static_cast<float>(bf16(pack.value[j]));
  return pack;
}

/// Whether all of these may be accessed in packs of 16 bytes. A null pointer, for a tensor that is not there, may.
template <class... Pointers>
bool aligned_for_packs(const Pointers*... data) {
  return ((reinterpret_cast<std::uintptr_t>(data) % 16 == 0) && ...);
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
