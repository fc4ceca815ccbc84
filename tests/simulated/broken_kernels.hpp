#pragma once
/// One deliberately broken kernel per kind of mistake. What is wrong with each is in its comment.

#include <cstdint>

#include "cuda/async_copy.cuh"
#include "cuda/block.cuh"
#include "cuda/shared.cuh"
#include "cuda/vector_access.cuh"

namespace engram::cuda::tests {

/// No barrier between writing and reading what another thread wrote. Right by luck when threads run in order.
inline __global__ void missing_barrier(float* y, int) {
  float* values = dynamic_shared<float>();
  const int t = static_cast<int>(threadIdx.x);
  values[t] = static_cast<float>(t);
  y[t] = t > 0 ? values[t - 1] : -1.0f;
}

/// No barrier between reading and the writes of the next round. Right by luck when threads run in order.
inline __global__ void write_after_read(float* y, int rounds) {
  float* values = dynamic_shared<float>();
  const int t = static_cast<int>(threadIdx.x), next = (t + 1) % static_cast<int>(blockDim.x);
  float sum = 0;
  for (int round = 0; round < rounds; ++round) {
    values[t] = static_cast<float>(round);
    __syncthreads();
    sum += t == static_cast<int>(blockDim.x) - 1 ? 0 : values[next];
  }
  y[t] = sum;
}

/// A shuffle does not order memory accesses, on a card; __syncwarp does.
inline __global__ void shuffle_as_barrier(float* y, int) {
  float* values = dynamic_shared<float>();
  const int t = static_cast<int>(threadIdx.x);
  values[t] = static_cast<float>(t);
  const int partner = __shfl_xor_sync(kAllLanes, t, 1);
  y[t] = values[partner];
}

/// Two blocks write one address.
inline __global__ void blocks_write_one_address(float* y, int) {
  if (threadIdx.x == blockIdx.x) y[0] = static_cast<float>(blockIdx.x);
}

/// Half of the threads wait at another barrier.
inline __global__ void divergent_barrier(float* y, int) {
  if (threadIdx.x < 16) {
    __syncthreads();
    y[0] = 1;
  } else {
    __syncthreads();
    y[1] = 1;
  }
}

/// Lane 20 calls with a mask of the lanes below 16.
inline __global__ void caller_outside_mask(float* y, int) {
  if (threadIdx.x < 16 || threadIdx.x == 20) y[threadIdx.x] = __shfl_sync(0xffffu, 1.0f, 0);
}

/// Every half waits for both, the lower one for one lane less.
inline __global__ void masks_differ(float* y, int) {
  y[threadIdx.x] = __shfl_sync(threadIdx.x < 16 ? 0x7fffffffu : 0xffffffffu, 1.0f, 0);
}

/// A lane of the mask, but not one of those that the mask has in common with itself: the source lane is outside.
inline __global__ void source_outside_mask(float* y, int) {
  if (threadIdx.x < 16) y[threadIdx.x] = __shfl_sync(0xffffu, 1.0f, 16);
}

/// One mask, two calls.
inline __global__ void calls_differ(float* y, int) {
  if (threadIdx.x < 16)
    y[threadIdx.x] = __shfl_sync(kAllLanes, 1.0f, 0);
  else
    y[threadIdx.x] = __shfl_sync(kAllLanes, 2.0f, 0);
}

/// A full mask although some lanes have returned.
inline __global__ void exited_lane(float* y, int lanes) {
  if (static_cast<int>(threadIdx.x) >= lanes) return;
  y[threadIdx.x] = warp_sum(1.0f);
}

/// The lower half waits for the block, the upper one for the lower one.
inline __global__ void deadlock(float* y, int) {
  if (threadIdx.x == 31) return;
  if (threadIdx.x < 16)
    __syncthreads();
  else
    y[threadIdx.x] = __shfl_sync(0x7fffffffu, 1.0f, 0);
}

/// Groups of 12 lanes.
inline __global__ void width_of_shuffle(float* y, int) { y[threadIdx.x] = __shfl_xor_sync(kAllLanes, 1.0f, 1, 12); }

/// Writes one element behind the dynamic shared memory.
inline __global__ void shared_overrun(float* y, int n) {
  float* values = dynamic_shared<float>();
  for (int i = static_cast<int>(threadIdx.x); i <= n; i += static_cast<int>(blockDim.x)) values[i] = 0;
  if (threadIdx.x == 0) y[0] = 0;
}

/// Writes one element behind an array of n.
inline __global__ void global_overrun(float* y, int n) {
  for (int i = static_cast<int>(threadIdx.x); i <= n; i += static_cast<int>(blockDim.x)) y[i] = 0;
}

/// Accesses of 16 bytes at an address that is aligned to 4.
inline __global__ void misaligned_vector(float* y, int) {
  const float* from = y + 1 + 4 * threadIdx.x;
  Pack<float, 4> pack = load<4>(from);
  pack.value[0] = 1;
  store(y + 4 * threadIdx.x, pack);
}

/// What a kernel with asynchronous copies can do wrong.
enum class CopyMistake : int {
  none,
  reads_early,      ///< before the wait
  no_barrier,       ///< between the wait and what another thread reads
  target_read,      ///< by others while the copy begins
  target_written,   ///< before the wait
  not_waited,       ///< the thread ends
  two_copies,       ///< into one place
  misaligned_from,  ///< 4 bytes off
  misaligned_to,    ///< the same
  from_null,        ///< where no zeros were asked for
  outside,          ///< the target is not in shared memory
};
/// Copies four numbers a thread, y[4 t .. 4 t + 3], and gives every thread the first one of the next. 32 threads, with
/// shared memory for them.
inline __global__ void broken_copy(float* y, int mistake_number) {
  const auto mistake = static_cast<CopyMistake>(mistake_number);
  float* const values = dynamic_shared<float>();
  const int t = static_cast<int>(threadIdx.x), next = (t + 1) % static_cast<int>(blockDim.x);
  float* const own = values + 4 * t;
  float seen = 0;
  if (mistake == CopyMistake::target_read) {
    for (int j = 0; j < 4; ++j) own[j] = 1;
    __syncthreads();
    seen += values[4 * next];
  }
  const float* const from = y + 4 * t + (mistake == CopyMistake::misaligned_from ? 1 : 0);
  begin_copy(mistake == CopyMistake::outside ? y + 4 * t : own + (mistake == CopyMistake::misaligned_to ? 1 : 0),
             mistake == CopyMistake::from_null ? nullptr : from);
  if (mistake == CopyMistake::two_copies) begin_copy(own, y);
  if (mistake == CopyMistake::target_written) own[2] = 1;
  if (mistake == CopyMistake::not_waited && t == 9) return;
  if (mistake == CopyMistake::reads_early) seen = own[0];
  wait_for_copies();
  if (mistake != CopyMistake::no_barrier) __syncthreads();
  seen += values[4 * next];
  __syncthreads();
  y[t] = seen;
}

/// Throws, which no kernel can on a card.
inline __global__ void throws(float* y, int) {
  __syncthreads();
#if defined(ENGRAM_CUDA_SIMULATED)
  if (threadIdx.x == 5) throw Error("number 5");
#endif
  y[threadIdx.x] = 0;
}

}  // namespace engram::cuda::tests
