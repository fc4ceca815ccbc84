/// Kernels without mistakes give their definition's numbers, and the same bits in every order.

#include <algorithm>
#include <cstring>
#include <set>

#include "tests/harness/catch.hpp"
#include "tests/harness/sanitizers.hpp"
#include "tests/simulated/correct_kernels.hpp"

namespace engram::cuda::tests {
namespace {

TEST_CASE("orders: equal bits forward, reversed and shuffled", "[simulated]") {
  DeviceFixture device;
  const std::vector<float> wanted = run_correct_kernels(device, 7);
  for (const simulated::RunOptions& options : run_orders()) {
    device.options() = options;
    const std::vector<float> got = run_correct_kernels(device, 7);
    REQUIRE(got.size() == wanted.size());
    CHECK(std::memcmp(got.data(), wanted.data(), got.size() * sizeof(float)) == 0);
  }
}

TEST_CASE("orders: the numbers are right", "[simulated]") {
  DeviceFixture device;
  constexpr int kRows = 2, kCount = kRows * kThreads;
  const std::vector<float> all = run_correct_kernels(device, kRows);
  std::vector<float> x(kCount);
  for (int i = 0; i < kCount; ++i) x[static_cast<std::size_t>(i)] = std::sin(static_cast<float>(i) * 1.7f) * 3;
  const auto got = [&](int kernel, int row, int i) {
    return all[static_cast<std::size_t>((kernel * kRows + row) * kThreads + i)];
  };
  for (int row = 0; row < kRows; ++row) {
    const float* in = x.data() + row * kThreads;
    double largest = in[0], sum = 0;
    for (int i = 0; i < kThreads; ++i) largest = std::max<double>(largest, in[i]);
    for (int i = 0; i < kThreads; ++i) sum += std::exp(in[i] - largest);
    std::vector<float> ring(in, in + kThreads);
    for (int round = 0; round < 5; ++round) {
      const std::vector<float> old = ring;
      for (std::size_t i = 0; i < ring.size(); ++i)
        ring[i] = 0.5f * old[i] + 0.25f * (old[(i + 1) % kThreads] + old[(i + kThreads - 1) % kThreads]);
    }
    for (int i = 0; i < kThreads; ++i) {
      CHECK(got(0, row, i) == Approx(std::exp(in[i] - largest) / sum).epsilon(1e-5));
      CHECK(got(1, row, i) == Approx(std::exp(in[i] - largest) / sum).epsilon(1e-5));
      CHECK(got(2, row, i) == Approx(ring[static_cast<std::size_t>(i)]).margin(1e-5));
      const int warp = i / 32 * 32, lane = i % 32;
      double up_to = 0, of_thirteen = 0;
      unsigned positive = 0;
      for (int other = 0; other <= (lane + 5) % 32; ++other) up_to += in[warp + other];
      for (int other = 0; other < 32; ++other) positive |= in[warp + other] > 0 ? 1u << other : 0u;
      for (int other = 0; other < 13; ++other) of_thirteen += in[warp + other];
      CHECK(got(3, row, i) == Approx(up_to + positive % 1024u + 1 + 496).epsilon(1e-5));
      double copied = 0;
      for (int piece = 0; piece < 6; ++piece)
        for (int j = 0; j < 5; ++j) copied += in[((i + 7 * j) % kThreads + 4 * piece) % kThreads];
      CHECK(got(6, row, i) == Approx(copied).margin(1e-4));
      CHECK(got(4, row, i) == Approx(lane >= 13 ? 0 : lane < 5 ? 2 * of_thirteen : of_thirteen).margin(1e-4));
    }
  }
}

// Threads share a counter: a race on a card, and for ThreadSanitizer.
__global__ void note_order(int* order, int* next) { order[(*next)++] = static_cast<int>(threadIdx.x); }

TEST_CASE("orders: threads do run in the asked order", "[simulated]") {
  if (harness::thread_sanitizer_watches()) return;
  DeviceFixture device;
  std::set<std::vector<int>> seen;
  for (const simulated::RunOptions& options : run_orders()) {
    device.options() = options;
    std::vector<int> order(64);
    int next = 0;
    launch(device.step, {.blocks = 1, .threads = 64}, note_order, order.data(), &next);
    seen.insert(order);
    if (options.order == simulated::RunOrder::forward) CHECK((order[0] == 0 && order[63] == 63));
    if (options.order == simulated::RunOrder::reversed) CHECK((order[0] == 63 && order[63] == 0));
    std::ranges::sort(order);
    for (int i = 0; i < 64; ++i) CHECK(order[static_cast<std::size_t>(i)] == i);
  }
  CHECK(seen.size() == 4);
}

__global__ void note_places(int* seen) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  seen[block * blockDim.x * blockDim.y * blockDim.z + thread] += 1;
}

TEST_CASE("orders: every thread of every block runs once", "[simulated]") {
  DeviceFixture device;
  for (const simulated::RunOptions& options : run_orders()) {
    device.options() = options;
    std::vector<int> seen(3 * 5 * 2 * 7 * 3 * 2);
    launch(device.step, {.blocks = {3, 5, 2}, .threads = {7, 3, 2}}, note_places, seen.data());
    CHECK(seen == std::vector<int>(seen.size(), 1));
  }
}

}  // namespace
}  // namespace engram::cuda::tests
