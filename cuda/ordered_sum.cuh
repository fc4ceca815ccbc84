#pragma once
/// The sum of any number of terms in double, in two launches: chunks into a workspace, then the chunks. The order of
/// the additions depends on the number of terms only.

#include <cstdint>

#include "core/step.hpp"
#include "cuda/block.cuh"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

inline constexpr int kSumThreads = 256;
inline constexpr std::int64_t kSumChunk = 16 * kSumThreads;

/// The sum of terms(i), begin <= i < end, in every thread of a block of kSumThreads.
template <class Terms>
__device__ __forceinline__ double sum_in_block(std::int64_t begin, std::int64_t end, const Terms& terms) {
  double sum = 0;
  for (std::int64_t i = begin + threadIdx.x; i < end; i += kSumThreads) sum += terms(i);
  return block_sum<kSumThreads>(sum);
}

template <class Terms>
__global__ void __launch_bounds__(kSumThreads) sum_of_chunk(std::int64_t count, Terms terms, double* partial) {
  const std::int64_t begin = blockIdx.x * kSumChunk;
  const double sum = sum_in_block(begin, begin + kSumChunk < count ? begin + kSumChunk : count, terms);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

/// In one block: takes(sum of terms), by one thread.
template <class Terms, class Take>
__global__ void __launch_bounds__(kSumThreads) sum_and_take(std::int64_t count, Terms terms, Take take) {
  const double sum = sum_in_block(0, count, terms);
  if (threadIdx.x == 0) take(sum);
}

struct PartialSum {
  const double* partial;

  __device__ double operator()(std::int64_t i) const { return partial[i]; }
};

/// Calls take(sum) on the device; `terms(i)` is a double.
template <class Terms, class Take>
void ordered_sum(Step& step, std::int64_t count, const Terms& terms, const Take& take) {
  if (count <= kSumChunk) {
    launch(step, {.blocks = 1, .threads = kSumThreads}, sum_and_take<Terms, Take>, count, terms, take);
    return;
  }
  const std::int64_t chunks = (count + kSumChunk - 1) / kSumChunk;
  const Workspace memory = step.workspace(static_cast<std::size_t>(chunks) * sizeof(double));
  double* partial = memory.data<double>();
  launch(step, {.blocks = chunks, .threads = kSumThreads}, sum_of_chunk<Terms>, count, terms, partial);
  launch(step, {.blocks = 1, .threads = kSumThreads}, sum_and_take<PartialSum, Take>, chunks, PartialSum{partial},
         take);
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
