#pragma once
/// Asynchronous copies from global into shared memory: the thread that begins one goes on, and what is copied passes
/// its registers by. Of compute capability 8.0 and up: cp.async of the PTX ISA, "Asynchronous copy, non-bulk".
///
/// A thread begins copies and waits for all of its own; a barrier then shows them to the others. From the beginning to
/// the wait nobody may read or write the target, or write what is copied, as a card may copy at any time between. The
/// simulated device holds kernels to that (cuda/simulated/async_copies.hpp): it copies at the wait, and the target is
/// NaN until then.

#include "cuda/vector_access.cuh"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// 16 bytes, which both addresses are multiples of; `to` is in dynamic shared memory. Zeros where there is nothing to
/// copy: `from` may then be any address. kIntoOperand: of a product by a warpgroup, for copy_operand() of
/// cuda/warpgroup.cuh.
template <bool kIntoOperand = false>
__device__ __forceinline__ void begin_copy(void* to, const void* from, bool exists = true) {
#if defined(ENGRAM_CUDA_SIMULATED)
  if (exists) simulated::count_load(from, 16);
  simulated::count_store(to, 16);
  simulated::begin_copy(ENGRAM_SITE("begin_copy"), to, exists ? from : nullptr, !exists, kIntoOperand);
#else
  // So many bytes are read, and the rest is zeros.
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(to))),
      "l"(__cvta_generic_to_global(from)), "r"(exists ? 16 : 0)
      : "memory");
#endif
}

/// For all copies that this thread has begun.
__device__ __forceinline__ void wait_for_copies() {
#if defined(ENGRAM_CUDA_SIMULATED)
  simulated::finish_copies();
#else
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
