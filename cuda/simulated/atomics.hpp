#pragma once
/// Atomic operations on integers. There are none on floating-point numbers: their sums would depend on the order in
/// which threads come, and every kernel must give the same bits on every run.

#include <atomic>
#include <concepts>
#include <type_traits>

#include "cuda/device_namespace.hpp"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

template <class T>
concept AtomicInteger = std::same_as<T, int> || std::same_as<T, unsigned> || std::same_as<T, unsigned long long>;

/// Each returns what was there before.
template <AtomicInteger T>
T atomicAdd(T* to, std::type_identity_t<T> value) {
  return std::atomic_ref<T>(*to).fetch_add(value, std::memory_order_relaxed);
}
template <std::floating_point T>
T atomicAdd(T* to, std::type_identity_t<T> value) = delete;

template <AtomicInteger T>
T atomicOr(T* to, std::type_identity_t<T> value) {
  return std::atomic_ref<T>(*to).fetch_or(value, std::memory_order_relaxed);
}
template <AtomicInteger T>
T atomicExch(T* to, std::type_identity_t<T> value) {
  return std::atomic_ref<T>(*to).exchange(value, std::memory_order_relaxed);
}
template <AtomicInteger T>
T atomicCAS(T* to, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  std::atomic_ref<T>(*to).compare_exchange_strong(expected, value, std::memory_order_relaxed);
  return expected;
}
template <AtomicInteger T>
T atomicMax(T* to, std::type_identity_t<T> value) {
  T before = std::atomic_ref<T>(*to).load(std::memory_order_relaxed);
  while (before < value && !std::atomic_ref<T>(*to).compare_exchange_weak(before, value, std::memory_order_relaxed)) {
  }
  return before;
}
template <AtomicInteger T>
T atomicMin(T* to, std::type_identity_t<T> value) {
  T before = std::atomic_ref<T>(*to).load(std::memory_order_relaxed);
  while (value < before && !std::atomic_ref<T>(*to).compare_exchange_weak(before, value, std::memory_order_relaxed)) {
  }
  return before;
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
