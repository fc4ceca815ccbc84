/// What kernels cost, where the answer is known by hand. This file is compiled as kernels for a cost report are.

#include <array>
#include <cmath>
#include <vector>

#include "core/launch_cost.hpp"
#include "cuda/launch.hpp"
#include "cuda/mma.cuh"
#include "cuda/shared.cuh"
#include "cuda/vector_access.cuh"
#include "tests/harness/catch.hpp"
#include "tests/simulated/device_fixture.hpp"

namespace engram::cuda::tests {
namespace {

constexpr int kLanes = 32;

/// Memory of the device, aligned to sectors and to rows of banks.
struct alignas(128) Memory {
  std::array<float, 4096> in{}, out{};
};

/// The cost of one launch.
template <class... Parameters, class... Arguments>
LaunchCost cost_of(DeviceFixture& device, const LaunchSize& size, void (*kernel)(Parameters...),
                   Arguments... arguments) {
  LaunchCounter* const counter = engram::launch_counter(*device.backend);
  REQUIRE(counter != nullptr);
  counter->count_launches(true);
  launch(device.step, size, kernel, arguments...);
  counter->count_launches(false);
  const std::vector<LaunchCost> costs = counter->take();
  REQUIRE(costs.size() == 1);
  return costs.front();
}

__device__ int thread_number() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

__global__ void copy_strided(const float* from, float* to, int stride, int first) {
  to[thread_number()] = from[thread_number() * stride + first];
}

TEST_CASE("cost: a coalesced copy moves what it asks for", "[simulated]") {
  DeviceFixture device;
  Memory memory;
  for (const simulated::RunOptions& options : run_orders()) {
    device.options() = options;
    const LaunchCost cost =
        cost_of(device, {.blocks = 2, .threads = 64}, copy_strided, memory.in.data(), memory.out.data(), 1, 0);
    CHECK_THAT(cost.place, ContainsSubstring("tests/simulated/cost_test.cpp:"));
    CHECK(cost.launches == 1);
    CHECK(cost.blocks == 2);
    CHECK(cost.warps == 4);
    for (const GlobalAccessCost& one : {cost.reads, cost.writes}) {
      CHECK(one.requests == 4);
      CHECK(one.lanes == 128);
      CHECK(one.bytes == 512);
      CHECK(one.used_bytes == 512);
      CHECK(one.sectors == 16);
    }
    CHECK(cost.distinct_read_bytes == 512);
    CHECK(cost.distinct_written_bytes == 512);
    CHECK(cost.l2_bytes == 1024);
    CHECK(cost.coalescing() == 1);
    CHECK(cost.active_share() == 1);
    CHECK(cost.shared_reads.requests + cost.shared_writes.requests == 0);
    CHECK(cost.local_bytes == 0);
    CHECK(cost.barriers + cost.collectives + cost.mma + cost.exponentials + cost.atomics == 0);
  }
}

TEST_CASE("cost: strides and wrong alignment touch more sectors", "[simulated]") {
  DeviceFixture device;
  Memory memory;
  const auto reads = [&](int stride, int first) {
    return cost_of(device, {.blocks = 1, .threads = kLanes}, copy_strided, memory.in.data(), memory.out.data(), stride,
                   first)
        .reads;
  };
  CHECK(reads(2, 0).sectors == 8);
  CHECK(reads(2, 0).used_bytes == 128);
  CHECK(reads(8, 0).sectors == 32);
  CHECK(reads(100, 0).sectors == 32);
  CHECK(reads(1, 1).sectors == 5);
  // All lanes read one number: a broadcast.
  CHECK(reads(0, 5).requests == 1);
  CHECK(reads(0, 5).bytes == 128);
  CHECK(reads(0, 5).used_bytes == 4);
  CHECK(reads(0, 5).sectors == 1);
}

__global__ void copy_packs(const float* from, float* to) {
  store(to + 4 * thread_number(), load<4>(from + 4 * thread_number()));
}

TEST_CASE("cost: an access of 16 bytes is one request", "[simulated]") {
  DeviceFixture device;
  Memory memory;
  const LaunchCost cost =
      cost_of(device, {.blocks = 1, .threads = kLanes}, copy_packs, memory.in.data(), memory.out.data());
  CHECK(cost.reads.requests == 1);
  CHECK(cost.reads.bytes == 512);
  CHECK(cost.reads.sectors == 16);
  CHECK(cost.writes.requests == 1);
  CHECK(cost.writes.sectors == 16);
}

__global__ void read_one_row(const float* from, float* to) { to[thread_number()] = from[threadIdx.x]; }

TEST_CASE("cost: what several blocks read is distinct once, and the L2 cache moves it for each", "[simulated]") {
  DeviceFixture device;
  Memory memory;
  const LaunchCost cost =
      cost_of(device, {.blocks = 4, .threads = kLanes}, read_one_row, memory.in.data(), memory.out.data());
  CHECK(cost.reads.bytes == 512);
  CHECK(cost.distinct_read_bytes == 128);
  CHECK(cost.distinct_written_bytes == 512);
  CHECK(cost.l2_bytes == 4 * 128 + 512);
  CHECK(cost.memory_bytes() == 640);
}

template <class T>
__global__ void read_dynamic(T* to, int stride) {
  T* const values = dynamic_shared<T>();
  values[threadIdx.x] = T(1);
  __syncthreads();
  to[threadIdx.x] = values[static_cast<int>(threadIdx.x) * stride];
}

TEST_CASE("cost: bank conflicts of dynamic shared memory", "[simulated]") {
  DeviceFixture device;
  const auto reads = [&]<class T>(T, int stride) {
    std::array<T, 64> to{};
    const LaunchCost cost = cost_of(device, {.blocks = 1, .threads = kLanes, .shared_bytes = sizeof(T) * 32 * 64},
                                    read_dynamic<T>, to.data(), stride);
    CHECK(cost.shared_writes.requests == 1);
    CHECK(cost.shared_writes.wavefronts == cost.shared_writes.least_wavefronts);
    CHECK(cost.most_shared_bytes == static_cast<std::int64_t>(sizeof(T)) * 32 * 64);
    CHECK(cost.barriers == 1);
    return cost.shared_reads;
  };
  CHECK(reads(0.0f, 1).wavefronts == 1);
  CHECK(reads(0.0f, 2).wavefronts == 2);
  CHECK(reads(0.0f, 32).wavefronts == 32);
  CHECK(reads(0.0f, 33).wavefronts == 1);
  CHECK(reads(0.0f, 0).wavefronts == 1);  // a broadcast
  CHECK(reads(0.0f, 32).least_wavefronts == 1);
  CHECK(reads(0.0f, 32).bytes == 128);
  // Halves of the warp, of which each needs a wavefront of its own, or two.
  CHECK(reads(0.0, 1).wavefronts == 2);
  CHECK(reads(0.0, 2).wavefronts == 4);
  CHECK(reads(0.0, 2).least_wavefronts == 2);
  // Two lanes share a word.
  CHECK(reads(std::uint16_t{0}, 1).wavefronts == 1);
}

template <int kRow>
__global__ void read_column(float* to) {
  __shared__ float values[kLanes][kRow];
  for (int row = 0; row < kLanes; ++row) values[row][threadIdx.x] = 1;
  __syncwarp();
  to[threadIdx.x] = values[threadIdx.x][3];
}

TEST_CASE("cost: bank conflicts of a static shared array, and how a wider row avoids them", "[simulated]") {
  DeviceFixture device;
  Memory memory;
  const LaunchCost plain = cost_of(device, {.blocks = 3, .threads = kLanes}, read_column<32>, memory.out.data());
  const LaunchCost padded = cost_of(device, {.blocks = 3, .threads = kLanes}, read_column<33>, memory.out.data());
  CHECK(plain.shared_writes.requests == 3 * 32);
  CHECK(plain.shared_writes.wavefronts == 3 * 32);
  CHECK(plain.shared_reads.requests == 3);
  CHECK(plain.shared_reads.wavefronts == 3 * 32);
  CHECK(padded.shared_reads.wavefronts == 3);
  CHECK(plain.collectives == 3);
  CHECK(plain.wavefronts_per_request() == Approx((32 + 32) / 33.0));
  CHECK(plain.least_wavefronts_per_request() == 1);
  CHECK(plain.reads.requests == 0);
}

__global__ void packs_in_shared(float* to) {
  float* const values = dynamic_shared<float>();
  store(values + 4 * threadIdx.x, Pack<float, 4>{});
  __syncthreads();
  store(to, load<4>(values));
}

TEST_CASE("cost: quarters of a warp take 16 bytes each", "[simulated]") {
  DeviceFixture device;
  Memory memory;
  const LaunchCost cost =
      cost_of(device, {.blocks = 1, .threads = 40, .shared_bytes = 640}, packs_in_shared, memory.out.data());
  CHECK(cost.warps == 2);
  CHECK(cost.shared_writes.requests == 2);
  CHECK(cost.shared_writes.wavefronts == 4 + 1);  // the second warp has 8 lanes
  CHECK(cost.shared_reads.wavefronts == 4 + 1);
}

__global__ void half_of_the_lanes(const float* from, float* to) {
  if (threadIdx.x % 2 == 0) to[threadIdx.x] = from[threadIdx.x];
}
__global__ void lanes_with_loops(const float* from, float* to) {
  float sum = 0;
  for (int i = 0; i <= static_cast<int>(threadIdx.x); ++i) sum += from[i];
  to[threadIdx.x] = sum;
}

TEST_CASE("cost: lanes that idle", "[simulated]") {
  DeviceFixture device;
  Memory memory;
  const LaunchCost half =
      cost_of(device, {.blocks = 1, .threads = kLanes}, half_of_the_lanes, memory.in.data(), memory.out.data());
  CHECK(half.reads.requests == 1);
  CHECK(half.reads.lanes == 16);
  CHECK(half.active_share() == 0.5);
  CHECK(half.coalescing() == 0.5);
  const LaunchCost loops =
      cost_of(device, {.blocks = 1, .threads = kLanes}, lanes_with_loops, memory.in.data(), memory.out.data());
  CHECK(loops.reads.requests == 32);
  CHECK(loops.reads.lanes == 32 * 33 / 2);
  CHECK(loops.reads.sectors == 32);  // each a broadcast
}

__global__ void meets_again(const float* from, float* to) {
  float sum = 0;
  for (int i = 0; i < 2; ++i) {
    if (i > 0 || threadIdx.x == 0) sum += from[32 * i + static_cast<int>(threadIdx.x)];
    __syncwarp();
  }
  to[threadIdx.x] = sum;
}

TEST_CASE("cost: where lanes meet they are in step again", "[simulated]") {
  DeviceFixture device;
  Memory memory;
  const LaunchCost cost =
      cost_of(device, {.blocks = 1, .threads = kLanes}, meets_again, memory.in.data(), memory.out.data());
  CHECK(cost.reads.requests == 2);
  CHECK(cost.reads.lanes == 1 + 32);
  CHECK(cost.reads.sectors == 1 + 4);
}

__attribute__((noipa)) void fill_list(float* list, float first) {
  for (int i = 0; i < 8; ++i) list[i] = first + static_cast<float>(i);
}
struct ManyNumbers {
  float number[64];
  float* to;
};
__global__ void array_on_the_stack(ManyNumbers numbers) {
  float list[8];
  fill_list(list, numbers.number[threadIdx.x % 64]);
  float sum = 0;
  for (int i = 0; i < 8; ++i) sum += list[(i + static_cast<int>(threadIdx.x)) % 8];
  numbers.to[threadIdx.x] = sum;
}

TEST_CASE("cost: arrays on the stack are local memory, parameters are not", "[simulated]") {
  DeviceFixture device;
  Memory memory;
  ManyNumbers numbers{};
  numbers.to = memory.out.data();
  const LaunchCost cost = cost_of(device, {.blocks = 1, .threads = kLanes}, array_on_the_stack, numbers);
  CHECK(cost.local_bytes == kLanes * (8 + 8) * 4);
  CHECK(cost.reads.requests == 0);
  CHECK(cost.writes.requests == 1);
}

__global__ void instructions(const float* from, float* to, unsigned* count) {
  __shared__ unsigned votes;
  if (threadIdx.x == 0) votes = 0;
  __syncthreads();
  atomicAdd(&votes, 1u);
  const float sum = warp_sum(std::exp(from[threadIdx.x]) + std::tanh(from[threadIdx.x]));
  __syncthreads();
  if (threadIdx.x < 4) atomicAdd(count, votes);
  to[threadIdx.x] = sum;
}

TEST_CASE("cost: barriers, shuffles, exponentials and atomic operations", "[simulated]") {
  DeviceFixture device;
  Memory memory;
  unsigned count = 0;
  const LaunchCost cost =
      cost_of(device, {.blocks = 1, .threads = 64}, instructions, memory.in.data(), memory.out.data(), &count);
  CHECK(count == 4 * 64);
  CHECK(cost.barriers == 2 * 2);
  CHECK(cost.collectives == 2 * 5);
  CHECK(cost.exponentials == 2 * 64);
  CHECK(cost.atomics == 2 + 1);
  CHECK(cost.shared_writes.wavefronts == 1 + 2 * 32);  // lanes of a word take turns
}

__global__ void multiply_blocks(float* c, int stride) {
  bf16* const block = dynamic_shared<bf16>();
  for (int i = static_cast<int>(threadIdx.x); i < 16 * stride; i += kLanes) block[i] = bf16(1.0f);
  __syncwarp();
  Sums sums;
  multiply_add(sums, load_fragment(block, stride), load_right_transposed(block, stride));
  for (int e = 0; e < 8; ++e) c[Sums::row_of(e) * 16 + Sums::column_of(e)] = sums.value[e];
}

TEST_CASE("cost: loads of operands are eight rows a quarter", "[simulated]") {
  DeviceFixture device;
  Memory memory;
  const auto cost = [&](int stride) {
    return cost_of(device, {.blocks = 1, .threads = kLanes, .shared_bytes = 2 * 16 * 64}, multiply_blocks,
                   memory.out.data(), stride);
  };
  CHECK(cost(24).mma == 2);
  CHECK(memory.out[0] == 16);
  CHECK(cost(24).shared_reads.requests == 2);
  CHECK(cost(24).shared_reads.wavefronts == 2 * 4);
  CHECK(cost(24).shared_reads.least_wavefronts == 2 * 4);
  CHECK(cost(32).shared_reads.wavefronts == 2 * 16);  // rows of 64 bytes: every second one in the same banks
  CHECK(cost(64).shared_reads.wavefronts == 2 * 32);
}

TEST_CASE("cost: nothing is counted unless it is wanted", "[simulated]") {
  DeviceFixture device;
  Memory memory;
  launch(device.step, {.blocks = 1, .threads = kLanes}, copy_strided, memory.in.data(), memory.out.data(), 1, 0);
  CHECK(launch_counter(*device.backend)->take().empty());
}

}  // namespace
}  // namespace engram::cuda::tests
