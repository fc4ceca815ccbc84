/// What no card allows is refused before anything runs.

#include "cuda/launch.hpp"
#include "cuda/shared.cuh"
#include "tests/harness/catch.hpp"
#include "tests/simulated/device_fixture.hpp"

namespace engram::cuda::tests {
namespace {

__global__ void count_threads(unsigned* count) { atomicAdd(count, 1u); }
__global__ void touch_shared(unsigned* count, int n) {
  unsigned char* bytes = dynamic_shared<unsigned char>();
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) bytes[i] = 1;
  atomicAdd(count, 1u);
}

unsigned started(DeviceFixture& device, const LaunchSize& size) {
  unsigned count = 0;
  launch(device.step, size, count_threads, &count);
  return count;
}

TEST_CASE("limits: what a card allows runs", "[simulated]") {
  DeviceFixture device;
  CHECK(started(device, {.blocks = 1, .threads = 1024}) == 1024);
  CHECK(started(device, {.blocks = 2, .threads = {1, 1024}}) == 2048);
  CHECK(started(device, {.blocks = {1, 2, 3}, .threads = {4, 4, 64}}) == 6 * 1024);
  CHECK(started(device, {.blocks = 70000, .threads = 1}) == 70000);
  CHECK(started(device, {.blocks = {1, 1, 65535}, .threads = 1}) == 65535);
  unsigned count = 0;
  launch(device.step, {.blocks = 2, .threads = 32, .shared_bytes = 227 << 10}, touch_shared, &count, 227 << 10);
  CHECK(count == 64);
}

TEST_CASE("limits: no blocks start nothing", "[simulated]") {
  DeviceFixture device;
  CHECK(started(device, {.blocks = 0, .threads = 32}) == 0);
  CHECK(started(device, {.blocks = {3, 0}, .threads = 32}) == 0);
}

TEST_CASE("limits: what no card allows is refused", "[simulated]") {
  DeviceFixture device;
  const auto refused = [&](const LaunchSize& size, const std::string& message) {
    INFO(message);
    CHECK_THROWS_AS(started(device, size), DeviceError);
    CHECK_THROWS_WITH(started(device, size),
                      ContainsSubstring(message) && ContainsSubstring("launched at tests/simulated/limits_test.cpp:"));
  };
  refused({.blocks = 1, .threads = 1025}, "launch: threads.x must be 1 to 1024, got 1025");
  refused({.blocks = 1, .threads = {1, 1025}}, "threads.y must be 1 to 1024, got 1025");
  refused({.blocks = 1, .threads = {1, 1, 65}}, "threads.z must be 1 to 64, got 65");
  refused({.blocks = 1, .threads = {64, 32}}, "threads of a block must be 1 to 1024, got 2048");
  refused({.blocks = 1, .threads = 0}, "threads.x must be 1 to 1024, got 0");
  refused({.blocks = -1, .threads = 32}, "blocks.x must be 0 to 2147483647, got -1");
  refused({.blocks = std::int64_t{1} << 31, .threads = 32}, "blocks.x must be 0 to 2147483647, got 2147483648");
  refused({.blocks = {1, 65536}, .threads = 32}, "blocks.y must be 0 to 65535, got 65536");
  refused({.blocks = {1, 1, 65536}, .threads = 32}, "blocks.z must be 0 to 65535, got 65536");
  refused({.blocks = 1, .threads = 32, .shared_bytes = (227 << 10) + 1},
          "bytes of shared memory must be 0 to 232448, got 232449");
}

TEST_CASE("limits: a launch needs the simulated device", "[simulated]") {
  const std::unique_ptr<Backend> cpu = open_backend({});
  HeapAllocator memory(*cpu);
  Step step(*cpu, memory);
  unsigned count = 0;
  CHECK_THROWS_WITH(launch(step, {.blocks = 1, .threads = 1}, count_threads, &count),
                    ContainsSubstring("device must be simulated, got cpu"));
}

TEST_CASE("limits: the order of a run is read from the environment's text", "[simulated]") {
  using simulated::parse_run_options;
  CHECK(parse_run_options("forward").order == simulated::RunOrder::forward);
  CHECK(parse_run_options("reversed").order == simulated::RunOrder::reversed);
  CHECK(parse_run_options("shuffled").order == simulated::RunOrder::shuffled);
  CHECK(parse_run_options("shuffled:42").seed == 42);
  for (const char* wrong : {"", "backward", "shuffled:", "shuffled:x", "shuffled:1x"})
    CHECK_THROWS_AS(parse_run_options(wrong), UsageError);
  CHECK_THROWS_AS(open_backend({DeviceKind::simulated, 1}), DeviceError);
}

}  // namespace
}  // namespace engram::cuda::tests
