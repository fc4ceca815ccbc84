#pragma once
/// CUDA's keywords, indices and intrinsics for the host compiler. What is missing here is missing on purpose: fences
/// and floating-point atomics (docs/guide/simulated-cuda.md says which rule forbids them), and __activemask, whose
/// answer depends on how a card happens to schedule.

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cuda/device_namespace.hpp"
#include "cuda/simulated/place.hpp"
#include "cuda/simulated/warpgroup.hpp"

#define __global__
#define __device__
#define __host__
#if defined(ENGRAM_SIMULATED_COST)
#define __forceinline__ inline __attribute__((always_inline))  // a place in the program for each call, as on a card
#else
#define __forceinline__ inline
#endif
#define __launch_bounds__(...)
/// One copy per OS thread, which runs one block at a time.
#define __shared__ static thread_local

namespace engram::simulated {

enum class Shuffle : std::uint8_t { index, up, down, exclusive_or };

void block_barrier(const char* file, int line, const char* name);
/// Orders the memory accesses of the lanes, as __syncwarp alone does.
void warp_barrier(const char* file, int line, const char* name, std::uint32_t mask);
/// The value of the lane that `how` and `argument` choose in the caller's group of `width` lanes.
std::uint64_t warp_shuffle(const char* file, int line, const char* name, std::uint32_t mask, std::uint64_t value,
                           Shuffle how, std::uint32_t argument, int width);
/// Bit i: lane i of the mask brought a value other than 0.
std::uint32_t warp_ballot(const char* file, int line, const char* name, std::uint32_t mask, bool value);
std::uint32_t warp_sum(const char* file, int line, const char* name, std::uint32_t mask, std::uint32_t value);
/// all[i] = the value of lane i of the mask; the others are not written. CUDA has no such call: tensor-core
/// instructions, which read the registers of a whole warp, are made of it (cuda/mma.cuh).
void warp_gather(const char* file, int line, const char* name, std::uint32_t mask, std::uint64_t value,
                 std::uint64_t (&all)[32]);
/// Fails when the launch asked for none.
std::byte* dynamic_shared_memory();

/// What cuda/async_copy.cuh is made of: 16 bytes that are copied until the thread's next finish_copies().
/// or_zeros: zeros where `from` is null; operand: the target is one, and written as by operand_written().
void begin_copy(const char* file, int line, const char* name, void* to, const void* from, bool or_zeros, bool operand);
void finish_copies();

/// What cuda/warpgroup.cuh is made of: a product; a thread's store into an operand, and that all its stores are done;
/// and the place of an operand in the dynamic shared memory, bytes.
void warpgroup_product(const char* file, int line, const char* name, const WarpgroupProduct& product);
void operand_written(const char* file, int line, const char* name, const void* data, std::size_t bytes);
void operands_stored();
std::uint64_t operand_address(const char* file, int line, const char* name, const void* data);

template <class T>
T shuffle(const char* file, int line, const char* name, std::uint32_t mask, T value, Shuffle how,
          std::uint32_t argument, int width = 32) {
  static_assert(std::is_arithmetic_v<T> && sizeof(T) <= 8 && sizeof(T) >= 4, "a shuffle moves 4 or 8 bytes");
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  word = warp_shuffle(file, line, name, mask, word, how, argument, width);
  std::memcpy(&value, &word, sizeof value);
  return value;
}

}  // namespace engram::simulated

#define ENGRAM_SITE(name) __FILE__, __LINE__, name
#define threadIdx (static_cast<const ::engram::simulated::Index3&>(::engram::simulated::current_place->thread))
#define blockIdx (static_cast<const ::engram::simulated::Index3&>(::engram::simulated::current_place->block))
#define blockDim (static_cast<const ::engram::simulated::Index3&>(::engram::simulated::current_place->block_size))
#define gridDim (static_cast<const ::engram::simulated::Index3&>(::engram::simulated::current_place->grid_size))
#define __syncthreads() ::engram::simulated::block_barrier(ENGRAM_SITE("__syncthreads"))
#define __syncwarp(...) \
  ::engram::simulated::warp_barrier(ENGRAM_SITE("__syncwarp"), ::engram::simulated::full_or(__VA_ARGS__))
#define __shfl_sync(mask, value, ...)                                                                        \
  ::engram::simulated::shuffle(ENGRAM_SITE("__shfl_sync"), mask, value, ::engram::simulated::Shuffle::index, \
                               __VA_ARGS__)
#define __shfl_up_sync(mask, value, ...)                                                                     \
  ::engram::simulated::shuffle(ENGRAM_SITE("__shfl_up_sync"), mask, value, ::engram::simulated::Shuffle::up, \
                               __VA_ARGS__)
#define __shfl_down_sync(mask, value, ...)                                                                       \
  ::engram::simulated::shuffle(ENGRAM_SITE("__shfl_down_sync"), mask, value, ::engram::simulated::Shuffle::down, \
                               __VA_ARGS__)
#define __shfl_xor_sync(mask, value, ...)                                   \
  ::engram::simulated::shuffle(ENGRAM_SITE("__shfl_xor_sync"), mask, value, \
                               ::engram::simulated::Shuffle::exclusive_or, __VA_ARGS__)
#define __ballot_sync(mask, predicate) \
  ::engram::simulated::warp_ballot(ENGRAM_SITE("__ballot_sync"), mask, (predicate) != 0)
#define __any_sync(mask, predicate) \
  (::engram::simulated::warp_ballot(ENGRAM_SITE("__any_sync"), mask, (predicate) != 0) != 0)
#define __all_sync(mask, predicate) \
  (::engram::simulated::warp_ballot(ENGRAM_SITE("__all_sync"), mask, !(predicate)) == 0)
#define __reduce_add_sync(mask, value) ::engram::simulated::warp_sum(ENGRAM_SITE("__reduce_add_sync"), mask, value)

namespace engram::simulated {
constexpr std::uint32_t full_or(std::uint32_t mask = 0xffffffffu) { return mask; }
}  // namespace engram::simulated

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {
/// One more than the number of the lowest bit that is set, 0 when none is.
constexpr int __ffs(int bits) { return bits == 0 ? 0 : std::countr_zero(static_cast<unsigned>(bits)) + 1; }
}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
