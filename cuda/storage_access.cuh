#pragma once
/// Elements of tensors that are stored as f32 or bf16, as operands of products and as results.

#include "cuda/elements.cuh"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// Eight neighbouring elements as bf16, f32 ones rounded; `from` is aligned to 16 bytes.
__device__ __forceinline__ Words<4> load_eight(const float* from) {
  const Pack<float, 4> low = load<4>(from), high = load<4>(from + 4);
  return {{rounded_pair(low.value[0], low.value[1]), rounded_pair(low.value[2], low.value[3]),
           rounded_pair(high.value[0], high.value[1]), rounded_pair(high.value[2], high.value[3])}};
}
__device__ __forceinline__ Words<4> load_eight(const bf16* from) { return load_as<Words<4>>(from); }

/// to (set or add) x and y; sums are made in f32.
template <class T>
__device__ __forceinline__ void write_two(T* to, float x, float y, Write write) {
  write_pack<2>(to, Pack<float, 2>{{x, y}}, write);
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
