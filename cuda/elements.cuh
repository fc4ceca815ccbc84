#pragma once
/// Element-wise kernels: one thread per 16 bytes where the memory is aligned to them, else one per element.

#include "core/kernel.hpp"
#include "cuda/vector_access.cuh"

namespace engram::cuda::inline ENGRAM_CUDA_DEVICE {

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

/// Calls body.run<kWidth>(i) for elements i, ..., i + kWidth - 1, so that every one of `count` is met once. `data` are the
/// pointers that the body gives to load<kWidth> and store; T decides the width. A body is copied to the device as bytes.
template <class T, class Body, class... Data>
void for_each_element(const LaunchedFrom& from, std::int64_t count, const Body& body, const Data*... data) {
  constexpr int kWidth = kPackWidth<T>;
  const auto blocks = [count](int width) {
    const std::int64_t in_block = std::int64_t{width} * kElementThreads;
    return (count + in_block - 1) / in_block;
  };
  if (aligned_for_packs(data...))
    launch(from, {.blocks = blocks(kWidth), .threads = kElementThreads}, each_element<kWidth, Body>, count, body);
  else
    launch(from, {.blocks = blocks(1), .threads = kElementThreads}, each_element<1, Body>, count, body);
}

/// result (set or add) value, element by element.
template <int kWidth, class T>
__device__ __forceinline__ void write_pack(T* to, const Pack<T, kWidth>& value, Write write) {
  if (write == Write::add) {
    Pack<T, kWidth> sum = load<kWidth>(to);
    for (int j = 0; j < kWidth; ++j) sum.value[j] += value.value[j];
    store(to, sum);
  } else {
    store(to, value);
  }
}

}  // namespace engram::cuda::inline ENGRAM_CUDA_DEVICE
