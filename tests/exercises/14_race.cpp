#include "tests/exercises/14_race.hpp"

#include <cstddef>

#include "cuda/launch.hpp"
#include "cuda/shared.cuh"

namespace engram::exercises {
namespace {

// Every thread brings a number into the block's shared memory. Then half of the threads add the other half's numbers to
// theirs, then a quarter, and so on. The arithmetic is right; and yet the kernel is wrong. Mend it here.
__global__ void sum_of_block(const float* x, float* sums) {
  float* values = cuda::dynamic_shared<float>();
  const int t = static_cast<int>(threadIdx.x);
  values[t] = x[blockIdx.x * blockDim.x + threadIdx.x];
  for (int half = static_cast<int>(blockDim.x) / 2; half > 0; half /= 2) {
    if (t < half) values[t] += values[t + half];
  }
  if (t == 0) sums[blockIdx.x] = values[0];
}

}  // namespace

void block_sums(Step& step, const float* x, float* sums, int blocks, int threads) {
  cuda::launch(step, {.blocks = blocks, .threads = threads, .shared_bytes = std::size_t(threads) * sizeof(float)},
               sum_of_block, x, sums);
}

}  // namespace engram::exercises
