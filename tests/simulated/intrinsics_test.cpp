/// Shuffles, votes and atomics give what CUDA's manual says.

#include <array>
#include <cmath>
#include <vector>

#include "cuda/launch.hpp"
#include "cuda/shared.cuh"
#include "cuda/warp.cuh"
#include "tests/harness/catch.hpp"
#include "tests/simulated/device_fixture.hpp"

namespace engram::cuda::tests {
namespace {

using Lanes = std::array<int, 32>;

__global__ void shuffle_lanes(int* index, int* up, int* down, int* exclusive_or, int argument, int width) {
  const int lane = static_cast<int>(threadIdx.x);
  index[lane] = __shfl_sync(kAllLanes, lane, argument, width);
  up[lane] = __shfl_up_sync(kAllLanes, lane, argument, width);
  down[lane] = __shfl_down_sync(kAllLanes, lane, argument, width);
  exclusive_or[lane] = __shfl_xor_sync(kAllLanes, lane, argument, width);
}

TEST_CASE("intrinsics: the lanes that shuffles read", "[simulated]") {
  DeviceFixture device;
  for (const int width : {1, 2, 4, 8, 16, 32})
    for (const int argument : {0, 1, 3, 7, 16, 31}) {
      INFO("width " << width << ", argument " << argument);
      Lanes index, up, down, exclusive_or;
      launch(device.step, {.blocks = 1, .threads = 32}, shuffle_lanes, index.data(), up.data(), down.data(),
             exclusive_or.data(), argument, width);
      for (int lane = 0; lane < 32; ++lane) {
        const auto i = static_cast<std::size_t>(lane);
        const int group = lane / width;
        CHECK(index[i] == group * width + argument % width);
        CHECK(up[i] == ((lane - argument) >= group * width ? lane - argument : lane));
        CHECK(down[i] == ((lane + argument) < (group + 1) * width ? lane + argument : lane));
        CHECK(exclusive_or[i] == ((lane ^ argument) / width <= group ? lane ^ argument : lane));
      }
    }
}

template <class T>
__global__ void shuffle_type(T* y) {
  y[threadIdx.x] = __shfl_xor_sync(kAllLanes, y[threadIdx.x], 31);
}

TEMPLATE_TEST_CASE("intrinsics: shuffles of every type", "[simulated]", int, unsigned, float, double, long long,
                   unsigned long long) {
  DeviceFixture device;
  std::array<TestType, 32> y;
  for (std::size_t i = 0; i < 32; ++i) y[i] = static_cast<TestType>(1e9) + static_cast<TestType>(i) * 1000;
  const auto before = y;
  launch(device.step, {.blocks = 1, .threads = 32}, shuffle_type<TestType>, y.data());
  for (std::size_t i = 0; i < 32; ++i) CHECK(y[i] == before[31 - i]);
}

__global__ void vote(unsigned* ballots, int* any, int* all, unsigned* sums, unsigned bits) {
  const unsigned lane = threadIdx.x;
  const bool mine = (bits >> lane & 1u) != 0;
  ballots[lane] = __ballot_sync(kAllLanes, mine);
  any[lane] = __any_sync(kAllLanes, mine) ? 1 : 0;
  all[lane] = __all_sync(kAllLanes, mine) ? 1 : 0;
  sums[lane] = __reduce_add_sync(kAllLanes, lane * bits);
  // The lower and the upper half vote apart, in one call.
  const unsigned half = lane < 16 ? 0xffffu : 0xffff0000u;
  if (__ballot_sync(half, mine) != (bits & half)) ballots[lane] = ~bits;
}

TEST_CASE("intrinsics: votes", "[simulated]") {
  DeviceFixture device;
  for (const unsigned bits : {0u, 1u, 0x80000000u, 0xdeadbeefu, 0xffffffffu}) {
    std::array<unsigned, 32> ballots{}, sums{};
    Lanes any{}, all{};
    launch(device.step, {.blocks = 1, .threads = 32}, vote, ballots.data(), any.data(), all.data(), sums.data(), bits);
    for (std::size_t lane = 0; lane < 32; ++lane) {
      CHECK(ballots[lane] == bits);
      CHECK(any[lane] == (bits != 0));
      CHECK(all[lane] == (bits == 0xffffffffu));
      CHECK(sums[lane] == 496u * bits);
    }
  }
}

/// The lower half meets twice among itself while the upper half already waits for all.
__global__ void meet_in_parts(int* y) {
  const int lane = static_cast<int>(threadIdx.x);
  int value = lane;
  if (lane < 16) {
    value = __shfl_xor_sync(0xffffu, value, 1);
    __syncwarp(0xffffu);
  }
  y[lane] = __shfl_xor_sync(kAllLanes, value, 16);
}

TEST_CASE("intrinsics: a part of a warp may meet before all do", "[simulated]") {
  DeviceFixture device;
  for (const simulated::RunOptions& options : run_orders()) {
    device.options() = options;
    Lanes y{};
    launch(device.step, {.blocks = 1, .threads = 32}, meet_in_parts, y.data());
    for (int lane = 0; lane < 32; ++lane)
      CHECK(y[static_cast<std::size_t>(lane)] == (lane < 16 ? lane + 16 : (lane - 16) ^ 1));
  }
}

__global__ void atomics(int* sum, unsigned* most, int* least, unsigned long long* bits, unsigned* exchanged) {
  const int t = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  atomicAdd(sum, t);
  atomicMax(most, static_cast<unsigned>(t));
  atomicMin(least, -t);
  atomicOr(bits, 1ull << (t % 64));
  atomicCAS(exchanged, static_cast<unsigned>(t), static_cast<unsigned>(t) + 1);
}

TEST_CASE("intrinsics: integer atomics over all blocks", "[simulated]") {
  DeviceFixture device;
  int sum = 0, least = 0;
  unsigned most = 0, exchanged = 0;
  unsigned long long bits = 0;
  launch(device.step, {.blocks = 10, .threads = 50}, atomics, &sum, &most, &least, &bits, &exchanged);
  CHECK(sum == 499 * 250);
  CHECK(most == 499);
  CHECK(least == -499);
  CHECK(bits == ~0ull);
  CHECK(exchanged >= 1);  // thread 0 found its number
}

__global__ void exit_before_barrier(float* y) {
  if (threadIdx.x >= 40) return;
  __syncthreads();
  y[threadIdx.x] = 1;
}

TEST_CASE("intrinsics: threads that have exited do not count at a barrier", "[simulated]") {
  DeviceFixture device;
  for (const simulated::RunOptions& options : run_orders()) {
    device.options() = options;
    std::vector<float> y(64);
    launch(device.step, {.blocks = 1, .threads = 64}, exit_before_barrier, y.data());
    for (std::size_t t = 0; t < 64; ++t) CHECK(y[t] == (t < 40 ? 1 : 0));
  }
}

__global__ void read_fresh_shared(float* y, int leave) {
  float* values = dynamic_shared<float>();
  y[blockIdx.x * blockDim.x + threadIdx.x] = values[threadIdx.x];
  values[threadIdx.x] = static_cast<float>(leave);
}

TEST_CASE("intrinsics: dynamic shared memory is NaN at the start of every block", "[simulated]") {
  DeviceFixture device;
  std::vector<float> y(8 * 32);
  for (int repetition = 0; repetition < 2; ++repetition) {
    launch(device.step, {.blocks = 8, .threads = 32, .shared_bytes = 32 * sizeof(float)}, read_fresh_shared, y.data(),
           3);
    for (const float value : y) CHECK(std::isnan(value));
  }
}

}  // namespace
}  // namespace engram::cuda::tests
