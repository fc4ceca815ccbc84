#pragma once
/// Elements of tensors that are stored as f32 or bf16 and computed with as either: loads and stores that convert.

#include <cstring>

#include "core/write.hpp"
#include "cuda/mma.cuh"
#include "cuda/vector_access.cuh"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// Eight neighbouring elements rounded to bf16; `from` is aligned to 16 bytes.
__device__ __forceinline__ Pack<bf16, 8> load_eight(const float* from) {
  const Pack<float, 4> low = load<4>(from), high = load<4>(from + 4);
  const std::uint32_t words[] = {pack_bf16(low.value[0], low.value[1]), pack_bf16(low.value[2], low.value[3]),
                                 pack_bf16(high.value[0], high.value[1]), pack_bf16(high.value[2], high.value[3])};
  Pack<bf16, 8> eight;
  static_assert(sizeof eight == sizeof words);
  std::memcpy(&eight, words, sizeof words);
  return eight;
}
__device__ __forceinline__ Pack<bf16, 8> load_eight(const bf16* from) { return load<8>(from); }

/// Two neighbouring elements, the first aligned to both.
__device__ __forceinline__ Pack<float, 2> load_two(const float* from) { return load<2>(from); }
__device__ __forceinline__ Pack<float, 2> load_two(const bf16* from) {
  const Pack<bf16, 2> two = load<2>(from);
  return {{static_cast<float>(two.value[0]), static_cast<float>(two.value[1])}};
}
__device__ __forceinline__ void store_two(float* to, const Pack<float, 2>& two) { store(to, two); }
__device__ __forceinline__ void store_two(bf16* to, const Pack<float, 2>& two) {
  store(to, Pack<bf16, 2>{{bf16(two.value[0]), bf16(two.value[1])}});
}
/// to (set or add) x and y; sums are made in f32.
template <class T>
__device__ __forceinline__ void write_two(T* to, float x, float y, Write write) {
  Pack<float, 2> two{{x, y}};
  if (write == Write::add) {
    const Pack<float, 2> before = load_two(to);
    two = {{before.value[0] + x, before.value[1] + y}};
  }
  store_two(to, two);
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
