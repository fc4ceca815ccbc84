#pragma once
/// Kernels without mistakes that use everything the simulated device has. They must run clean under every sanitizer and
/// give equal bits in every order. Each works on one block of `kThreads` threads per row of an array.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "cuda/async_copy.cuh"
#include "cuda/block.cuh"
#include "cuda/shared.cuh"
#include "tests/simulated/device_fixture.hpp"

namespace engram::cuda::tests {

inline constexpr int kThreads = 96;  // three warps

/// y[row, :] = softmax(x[row, :]), with the row in dynamic shared memory.
template <int kBlock>
__global__ void block_softmax(const float* x, float* y, int n) {
  float* row = dynamic_shared<float>();
  x += std::int64_t{blockIdx.x} * n;
  y += std::int64_t{blockIdx.x} * n;
  float largest = -INFINITY;
  for (int i = static_cast<int>(threadIdx.x); i < n; i += kBlock) {
    row[i] = x[i];
    largest = std::max(largest, row[i]);
  }
  largest = block_maximum<kBlock>(largest);
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < n; i += kBlock) {
    row[i] = std::exp(row[i] - largest);
    sum += row[i];
  }
  sum = block_sum<kBlock>(sum);
  for (int i = static_cast<int>(threadIdx.x); i < n; i += kBlock) y[i] = row[i] / sum;
}

/// Diffusion on a ring in static shared memory, `rounds` rounds with two barriers each.
inline __global__ void barrier_rounds(const float* x, float* y, int rounds) {
  __shared__ float ring[kThreads];
  const int t = static_cast<int>(threadIdx.x);
  const std::int64_t first = std::int64_t{blockIdx.x} * kThreads;
  ring[t] = x[first + t];
  for (int round = 0; round < rounds; ++round) {
    __syncthreads();
    const float next = 0.5f * ring[t] + 0.25f * (ring[(t + 1) % kThreads] + ring[(t + kThreads - 1) % kThreads]);
    __syncthreads();
    ring[t] = next;
  }
  y[first + t] = ring[t];
}

/// Sums up to each lane, the lanes' ballots, and a rotation by warp-wide exchange.
inline __global__ void warp_exchanges(const float* x, float* y, int) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  float sum = x[i];
  for (int distance = 1; distance < kWarpLanes; distance *= 2) {
    const float before = __shfl_up_sync(kAllLanes, sum, distance);
    if (lane >= distance) sum += before;
  }
  const unsigned positive = __ballot_sync(kAllLanes, x[i] > 0);
  const float rotated = __shfl_sync(kAllLanes, sum, (lane + 5) % kWarpLanes);
  const bool any = __any_sync(kAllLanes, lane == 3) && __all_sync(kAllLanes, lane < kWarpLanes);
  y[i] = rotated + static_cast<float>(positive % 1024u) + (any ? 1.0f : 0.0f) +
         static_cast<float>(__reduce_add_sync(kAllLanes, static_cast<unsigned>(lane)));
}

/// Lanes from `lanes` on return at once; the others add up in a mask of themselves, then the two halves of these alone.
inline __global__ void narrow_masks(const float* x, float* y, int lanes) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  y[i] = 0;
  if (lane >= lanes) return;
  const unsigned mask = kAllLanes >> (kWarpLanes - lanes);
  float sum = 0;
  for (int other = 0; other < lanes; ++other) sum += __shfl_sync(mask, x[i], other);
  const unsigned low = mask & 0x1fu, half = lane < 5 ? low : mask & ~low;
  if (lane < 5) sum += __shfl_sync(low, sum, 0);
  __syncwarp(half);
  y[i] = sum;
}

/// Neighbours of a warp exchange through shared memory, ordered by __syncwarp alone.
inline __global__ void warp_memory(const float* x, float* y, int rounds) {
  __shared__ float values[kThreads];
  const int t = static_cast<int>(threadIdx.x);
  const std::int64_t first = std::int64_t{blockIdx.x} * kThreads;
  values[t] = x[first + t];
  for (int round = 0; round < rounds; ++round) {
    __syncwarp();
    const float other = values[t ^ 1];
    __syncwarp();
    values[t] = 0.75f * values[t] + 0.25f * other;
  }
  y[first + t] = values[t];
}

/// Sums over pieces of kThreads numbers, four for each thread of the first quarter, each copied while the one before is
/// added up: two places that are used in turn.
inline __global__ void copied_ahead(const float* x, float* y, int pieces) {
  float* const values = dynamic_shared<float>();
  const int t = static_cast<int>(threadIdx.x);
  const float* const row = x + std::int64_t{blockIdx.x} * kThreads;
  const auto begin = [&](int piece) {
    if (t < kThreads / 4) begin_copy(values + piece % 2 * kThreads + 4 * t, row + (4 * t + 4 * piece) % kThreads);
  };
  begin(0);
  float sum = 0;
  for (int piece = 0; piece < pieces; ++piece) {
    wait_for_copies();
    __syncthreads();
    if (piece + 1 < pieces) begin(piece + 1);
    for (int i = 0; i < 5; ++i) sum += values[piece % 2 * kThreads + (t + 7 * i) % kThreads];
  }
  y[std::int64_t{blockIdx.x} * kThreads + t] = sum;
}

/// All of them on one input of `rows` rows of kThreads numbers: the outputs, one after the other.
inline std::vector<float> run_correct_kernels(DeviceFixture& device, int rows) {
  const auto count = static_cast<std::size_t>(rows) * kThreads;
  std::vector<float> x(count), y(count), all;
  for (std::size_t i = 0; i < count; ++i) x[i] = std::sin(static_cast<float>(i) * 1.7f) * 3;
  const auto run = [&](void (*kernel)(const float*, float*, int), int argument, std::size_t shared_bytes, int threads) {
    std::fill(y.begin(), y.end(), NAN);
    launch(device.step, {.blocks = rows, .threads = threads, .shared_bytes = shared_bytes}, kernel, x.data(), y.data(),
           argument);
    all.insert(all.end(), y.begin(), y.end());
  };
  run(block_softmax<64>, kThreads, kThreads * sizeof(float), 64);
  run(block_softmax<32>, kThreads, kThreads * sizeof(float), 32);
  run(barrier_rounds, 5, 0, kThreads);
  run(warp_exchanges, 0, 0, kThreads);
  run(narrow_masks, 13, 0, kThreads);
  run(warp_memory, 4, 0, kThreads);
  run(copied_ahead, 6, 2 * kThreads * sizeof(float), kThreads);
  return all;
}

}  // namespace engram::cuda::tests
