#pragma once
/// Several neighbouring elements in one access: 16 bytes is the most that a card moves at once per thread.

#include <cstdint>

#include "cuda/launch.hpp"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

template <class T, int kWidth>
struct alignas(sizeof(T) * kWidth) Pack {
  T value[kWidth];
};

/// Elements of one access of 16 bytes.
template <class T>
inline constexpr int kPackWidth = 16 / static_cast<int>(sizeof(T));

/// kWidth elements from `from`, which must be aligned to all of them.
template <int kWidth, class T>
__device__ __forceinline__ Pack<T, kWidth> load(const T* from) {
  return *reinterpret_cast<const Pack<T, kWidth>*>(from);
}
template <int kWidth, class T>
__device__ __forceinline__ void store(T* to, const Pack<T, kWidth>& pack) {
  *reinterpret_cast<Pack<T, kWidth>*>(to) = pack;
}

/// Whether all of these may be accessed in packs of 16 bytes. A null pointer, for a tensor that is not there, may.
template <class... Pointers>
bool aligned_for_packs(const Pointers*... data) {
  return ((reinterpret_cast<std::uintptr_t>(data) % 16 == 0) && ...);
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
