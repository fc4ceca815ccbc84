#pragma once
/// Element-wise kernels: one thread per 16 bytes where the memory is aligned to them, else one per element.

#include "core/kernel.hpp"
#include "cuda/vector_access.cuh"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

inline constexpr int kElementThreads = 256;

template <int kWidth, class Body>
__global__ void __launch_bounds__(kElementThreads) each_element(std::int64_t count, Body body) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kElementThreads + threadIdx.x;
  const std::int64_t first = thread * kWidth;
  if (first + kWidth <= count) {
    body.template run<kWidth>(first);
  } else {
    for (std::int64_t i = first; i < count; ++i) body.template run<1>(i);
  }
}

/// Calls body.run<kWidth>(i) for elements i, ..., i + kWidth - 1 (i a multiple of kWidth) and body.run<1>(i) for those
/// of the last, shorter piece, so that every one of `count` is met once. A body is copied to the device as bytes.
template <int kWidth, class Body>
void launch_elements(const LaunchedFrom& from, std::int64_t count, const Body& body) {
  const std::int64_t in_block = std::int64_t{kWidth} * kElementThreads;
  launch(from, {.blocks = (count + in_block - 1) / in_block, .threads = kElementThreads}, each_element<kWidth, Body>,
         count, body);
}

/// launch_elements() with packs of 16 bytes of T where `in_packs` allows them, else one by one.
template <class T, class Body>
void for_each_element(const LaunchedFrom& from, std::int64_t count, bool in_packs, const Body& body) {
  if (in_packs)
    launch_elements<kPackWidth<T>>(from, count, body);
  else
    launch_elements<1>(from, count, body);
}

/// to (set or add) value, element by element.
template <int kWidth, class T>
__device__ __forceinline__ void write_pack(T* to, const Pack<Compute<T>, kWidth>& value, Write write) {
  if (write == Write::add) {
    Pack<Compute<T>, kWidth> sum = load<kWidth>(to);
    for (int j = 0; j < kWidth; ++j) sum.value[j] += value.value[j];
    store(to, sum);
  } else {
    store(to, value);
  }
}
/// The same at element i of a target.
template <int kWidth, class T>
__device__ __forceinline__ void write_pack(const TargetElements<T>& to, std::int64_t i,
                                           const Pack<Compute<T>, kWidth>& value) {
  write_pack(to.data + i, value, to.write);
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
