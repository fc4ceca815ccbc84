/// Some blocks of a launch stand for all: their cost beside that of all blocks. Compiled as cost_test.cpp is.

#include <algorithm>
#include <functional>
#include <vector>

#include "core/launch_cost.hpp"
#include "cuda/launch.hpp"
#include "cuda/shared.cuh"
#include "tests/harness/catch.hpp"
#include "tests/simulated/device_fixture.hpp"

namespace engram::cuda::tests {
namespace {

constexpr int kThreads = 64, kWidth = 1024;
constexpr std::int64_t kBlocks = 1000;

/// A block scales a row by a row that all share, and leaves its last numbers alone in the last block.
__global__ void scale_rows(const float* rows, const float* factors, float* to, int numbers) {
  float* const sums = dynamic_shared<float>();
  sums[threadIdx.x * 2 % kThreads] = 1;
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kWidth; i += kThreads) {
    const int at = static_cast<int>(blockIdx.x) * kWidth + i;
    if (at < numbers) to[at] = rows[at] * factors[i];
  }
}

/// Tiles of eight rows, three blocks each, of which every one reads the whole tile.
__global__ void read_tiles(const float* rows, float* to) {
  const int tile = static_cast<int>(blockIdx.x) / 3;
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < 8 * kWidth; i += kThreads) sum += rows[tile * 8 * kWidth + i];
  to[blockIdx.x * kThreads + threadIdx.x] = sum;
}

struct Memory {
  DeviceFixture& device;
  std::vector<Tensor> tensors;

  float* numbers(std::int64_t count) {
    tensors.push_back(device.step.empty({count}, DType::f32));
    return tensors.back().data<float>();
  }
};

/// The cost of one launch as sampling has it.
LaunchCost cost_of(DeviceFixture& device, const LaunchSampling& sampling, const std::function<void(Step&)>& launch) {
  LaunchCounter* const counter = launch_counter(*device.backend);
  REQUIRE(counter != nullptr);
  counter->sample(sampling);
  counter->count_launches(true);
  launch(device.step);
  counter->count_launches(false);
  counter->sample({});
  const std::vector<LaunchCost> costs = counter->take();
  REQUIRE(costs.size() == 1);
  return costs.front();
}

void check_same(const LaunchCost& sampled, const LaunchCost& all) {
  CHECK(sampled.place == all.place);
  CHECK(sampled.function == all.function);
  CHECK(sampled.launches == all.launches);
  CHECK(sampled.blocks == all.blocks);
  CHECK(sampled.warps == all.warps);
  CHECK(sampled.most_shared_bytes == all.most_shared_bytes);
  CHECK(sampled.reads.requests == all.reads.requests);
  CHECK(sampled.reads.sectors == all.reads.sectors);
  CHECK(sampled.reads.used_bytes == all.reads.used_bytes);
  CHECK(sampled.writes.requests == all.writes.requests);
  CHECK(sampled.writes.lanes == all.writes.lanes);
  CHECK(sampled.shared_writes.wavefronts == all.shared_writes.wavefronts);
  CHECK(sampled.barriers == all.barriers);
  CHECK(sampled.l2_bytes == all.l2_bytes);
  CHECK(sampled.distinct_read_bytes == all.distinct_read_bytes);
  CHECK(sampled.distinct_written_bytes == all.distinct_written_bytes);
}

TEST_CASE("sampled cost: blocks that are alike but for the last cost what all of them cost", "[simulated]") {
  DeviceFixture device;
  Memory memory{device, {}};
  constexpr int kNumbers = static_cast<int>(kBlocks) * kWidth - 304;
  const float* rows = memory.numbers(kNumbers);
  const float* factors = memory.numbers(kWidth);
  float* to = memory.numbers(kNumbers);
  const auto run = [&](Step& step) {
    launch(step, {.blocks = kBlocks, .threads = kThreads, .shared_bytes = 4 * kThreads}, scale_rows, rows, factors, to,
           kNumbers);
  };
  const LaunchCost all = cost_of(device, {}, run);
  CHECK(all.distinct_read_bytes == 4 * (kNumbers + kWidth));
  CHECK(all.shared_writes.wavefronts == 2 * all.shared_writes.requests);
  for (const int blocks : {3, 8, 16}) check_same(cost_of(device, {.blocks = blocks}, run), all);
}

TEST_CASE("sampled cost: what several blocks read is moved once", "[simulated]") {
  DeviceFixture device;
  Memory memory{device, {}};
  const float* rows = memory.numbers(std::int64_t{50} * 8 * kWidth);
  float* to = memory.numbers(std::int64_t{150} * kThreads);
  const auto run = [&](Step& step) { launch(step, {.blocks = 150, .threads = kThreads}, read_tiles, rows, to); };
  check_same(cost_of(device, {.blocks = 10}, run), cost_of(device, {}, run));
}

TEST_CASE("sampled cost: few blocks run, and of launches that are alike one does", "[simulated]") {
  DeviceFixture device;
  Memory memory{device, {}};
  constexpr int kNumbers = static_cast<int>(kBlocks) * kWidth;
  float* rows = memory.numbers(kNumbers);
  const float* factors = memory.numbers(kWidth);
  float* to = memory.numbers(kNumbers);
  std::fill_n(rows, kNumbers, 1.0f);
  std::fill_n(memory.tensors[1].data<float>(), kWidth, 3.0f);
  const auto written = [&] {
    const auto ran = std::count(to, to + kNumbers, 3.0f) / kWidth;
    std::fill_n(to, kNumbers, 0.0f);
    return ran;
  };
  const auto run = [&](Step& step) {
    launch(step, {.blocks = kBlocks, .threads = kThreads, .shared_bytes = 4 * kThreads}, scale_rows, rows, factors, to,
           kNumbers);
  };
  written();
  const LaunchCost first = cost_of(device, {.blocks = 8}, run);
  CHECK(written() == 8);
  check_same(cost_of(device, {.blocks = 8}, run), first);
  CHECK(written() == 0);
  cost_of(device, {.blocks = 8, .whole = true}, run);
  CHECK(written() == kBlocks);
  // Nobody would see what it does.
  launch_counter(*device.backend)->sample({.blocks = 8});
  run(device.step);
  CHECK(written() == 0);
  launch_counter(*device.backend)->sample({});
  run(device.step);
  CHECK(written() == kBlocks);
}

TEST_CASE("sampled cost: memory is addresses, and of what is copied there what is small", "[simulated]") {
  DeviceFixture device;
  launch_counter(*device.backend)->sample({.blocks = 8});
  constexpr std::int64_t kTerabyte = std::int64_t{1} << 40;
  {
    Tensor large = device.step.empty({kTerabyte / 4}, DType::f32), small = device.step.empty({4}, DType::f32);
    const std::vector<float> numbers{1, 2, 3, 4};
    device.backend->copy(small.raw(), numbers.data(), small.bytes(), CopyKind::host_to_device);
    device.backend->copy(large.raw(), small.raw(), small.bytes(), CopyKind::device_to_device);
    CHECK(large.data<float>()[3] == 4);
    device.backend->copy(large.rows(kTerabyte / 8, kTerabyte / 8 + (1 << 20)).raw(), large.raw(), 4 << 20,
                         CopyKind::device_to_device);
    CHECK(large.data<float>()[kTerabyte / 8 + 3] == 0);
  }
  CHECK(device.backend->reserved_bytes() < 4096);
  launch_counter(*device.backend)->sample({});
}

}  // namespace
}  // namespace engram::cuda::tests
