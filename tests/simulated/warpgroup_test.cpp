/// Products by a warpgroup: every number of every operand is where cuda/warpgroup.cuh says, and each rule of the shared
/// memory that tensor cores read is held.

#include "cuda/warpgroup.cuh"

#include <array>
#include <string>
#include <vector>

#include "cuda/shared.cuh"
#include "tests/harness/catch.hpp"
#include "tests/simulated/device_fixture.hpp"

namespace engram::cuda::tests {
namespace {

constexpr int kRows = 64;
constexpr std::size_t kTile = sizeof(bf16) * kRows * kOperandColumns;
using Tile = std::vector<float>;  // [64, 64]

/// Which rows of the right operand a product has: all, or 32 from the first or from the middle on.
struct Part {
  int blocks, first;
};

__device__ Fragment fragment_of(const float* x, int column) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  const int row = static_cast<int>(threadIdx.x) / kWarpLanes * 16 + lane / 4, from = column + lane % 4 * 2;
  const auto pair = [&](int r, int c) { return rounded_pair(x[r * 64 + c], x[r * 64 + c + 1]); };
  return {{pair(row, from), pair(row + 8, from), pair(row, from + 8), pair(row + 8, from + 8)}};
}
__device__ void store_tile(bf16* tile, const float* x) {
  for (int i = static_cast<int>(threadIdx.x); i < kRows * 8; i += kWarpgroupThreads) {
    Words<4> eight;
    const float* const from = x + i * 8;
    for (int j = 0; j < 4; ++j) eight.value[j] = rounded_pair(from[2 * j], from[2 * j + 1]);
    store_operand(tile, i / 8, i % 8 * 8, eight);
  }
}
__device__ void write_sums(const Sums& sums, int column, float* c) {
  const int row = static_cast<int>(threadIdx.x) / kWarpLanes * 16;
  for (int e = 0; e < 8; ++e) c[(row + Sums::row_of(e)) * 64 + column + Sums::column_of(e)] = sums.value[e];
}

template <int kBlocks>
__device__ void multiply_part(const float* a, const bf16* rows, bool across, float* c) {
  if (across) {
    Fragment left[kBlocks];
    for (int k = 0; k < kBlocks; ++k) left[k] = fragment_of(a, 16 * k);
    Sums sums[kOperandBlocks];
    for (Sums& block : sums)
      for (float& value : block.value) value = 0.5f;
    multiply_add_rows(sums, left, rows);
    for (int b = 0; b < kOperandBlocks; ++b) write_sums(sums[b], 16 * b, c);
  } else {
    Fragment left[kOperandBlocks];
    for (int k = 0; k < kOperandBlocks; ++k) left[k] = fragment_of(a, 16 * k);
    Sums sums[kBlocks];
    for (Sums& block : sums)
      for (float& value : block.value) value = 7;
    multiply_by_rows(sums, left, rows);
    for (int b = 0; b < kBlocks; ++b) write_sums(sums[b], 16 * b, c);
  }
}

__global__ void multiply_tiles(const float* a, const float* b, Part part, bool across, float* c) {
  bf16* const tile = dynamic_shared<bf16, kOperandAlignment>() + kRows * kOperandColumns;  // behind another one
  store_tile(tile, b);
  operands_stored();
  __syncthreads();
  const bf16* const rows = tile + part.first * kOperandColumns;
  part.blocks == 4 ? multiply_part<4>(a, rows, across, c) : multiply_part<2>(a, rows, across, c);
}

TEST_CASE("warpgroup: products with rows, and with columns", "[simulated]") {
  DeviceFixture device;
  Tile a(kRows * 64), b(kRows * 64);
  // Small whole numbers: exact in bf16, and so are their sums.
  for (int i = 0; i < kRows * 64; ++i) {
    a[static_cast<std::size_t>(i)] = static_cast<float>(i * 7 % 11 - 5);
    b[static_cast<std::size_t>(i)] = static_cast<float>(i * 5 % 13 - 6);
  }
  const auto at = [](const Tile& x, int row, int column) { return x[static_cast<std::size_t>(row * 64 + column)]; };
  for (const bool across : {false, true})
    for (const Part part : {Part{4, 0}, Part{2, 0}, Part{2, 32}})
      for (const simulated::RunOptions& options : run_orders()) {
        device.options() = options;
        Tile c(kRows * 64, -1), wanted(kRows * 64, -1);
        for (int row = 0; row < kRows; ++row)
          for (int column = 0; column < (across ? 64 : 16 * part.blocks); ++column) {
            float sum = across ? 0.5f : 0;
            for (int k = 0; k < (across ? 16 * part.blocks : 64); ++k)
              sum += at(a, row, k) * (across ? at(b, part.first + k, column) : at(b, part.first + column, k));
            wanted[static_cast<std::size_t>(row * 64 + column)] = sum;
          }
        launch(device.step, {.blocks = 1, .threads = kWarpgroupThreads, .shared_bytes = 2 * kTile}, multiply_tiles,
               a.data(), b.data(), part, across, c.data());
        CAPTURE(across, part.blocks, part.first);
        CHECK(c == wanted);
      }
}

/// What a kernel can leave out, or do too early.
enum class Mistake : int {
  none,
  fence,
  barrier,
  early_write,
  plain_store,
  unwritten,
  displaced,
  outside,
  two_places,
  two_operands,
};

__global__ void broken_product(Mistake mistake, float* c) {
  bf16* const tile = dynamic_shared<bf16, kOperandAlignment>();
  for (int i = static_cast<int>(threadIdx.x); i < kRows * 8; i += kWarpgroupThreads)
    if (mistake != Mistake::unwritten || i != 77) store_operand(tile, i / 8, i % 8 * 8, {});
  if (mistake != Mistake::fence || threadIdx.x != 9) operands_stored();
  if (mistake != Mistake::barrier) __syncthreads();
  if (mistake == Mistake::plain_store && threadIdx.x == 3) tile[1000] = bf16(1.0f);
  const bf16* rows = tile;
  if (mistake == Mistake::displaced) rows += 4 * kOperandColumns;
  if (mistake == Mistake::outside) rows += 32 * kOperandColumns;
  if (mistake == Mistake::two_operands && threadIdx.x >= 64) rows += 8 * kOperandColumns;
  const Fragment left[kOperandBlocks] = {};
  Sums sums[4];
  if (mistake == Mistake::two_places && threadIdx.x >= 96)
    multiply_add_rows(sums, left, rows);
  else
    multiply_by_rows(sums, left, rows);
  if (mistake == Mistake::early_write) store_operand(tile, 0, 0, {});
  c[threadIdx.x] = sums[0].value[0];
}

std::string report_of(Mistake mistake, const simulated::RunOptions& options, int threads = kWarpgroupThreads) {
  DeviceFixture device;
  device.options() = options;
  std::vector<float> c(1024);
  try {
    launch(device.step, {.blocks = 1, .threads = threads, .shared_bytes = kTile}, broken_product, mistake, c.data());
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "no report";
}

TEST_CASE("warpgroup: mistakes are reported", "[simulated]") {
  const std::string product =
      "a product must read an operand that was written, fenced and is behind a barrier, got byte ";
  const std::pair<Mistake, std::string> all[] = {
      {Mistake::none, "no report"},
      {Mistake::fence, product + "128, which was not fenced by the thread that wrote it"},
      {Mistake::barrier, "which was fenced, but no barrier came behind"},
      {Mistake::early_write,
       "a barrier must come between a product and the next write to its operand, got a write to "
       "byte 0 at cuda/warpgroup.cuh"},
      {Mistake::plain_store, "an operand must be written by store_operand, got byte "},
      {Mistake::unwritten, ", which was not written as one"},
      {Mistake::displaced, "an operand of eight rows must begin at a multiple of 1,024 bytes, got byte 512"},
      {Mistake::outside, "an operand must lie in the block's 8192 bytes of shared memory, got byte 8192"},
      {Mistake::two_places, "the threads of a warpgroup must make one call, got thread "},
      {Mistake::two_operands, "the threads of a warpgroup must name one operand, got another one of thread "},
  };
  for (const auto& [mistake, wanted] : all)
    for (const simulated::RunOptions& options : run_orders()) {
      CAPTURE(static_cast<int>(mistake));
      CHECK_THAT(report_of(mistake, options), Catch::Matchers::ContainsSubstring(wanted));
    }
  CHECK_THAT(report_of(Mistake::none, {}, 96),
             Catch::Matchers::ContainsSubstring("a warpgroup must have 128 threads, got a block of 96"));
}

__global__ void half_a_warpgroup(float* c) {
  bf16* const tile = dynamic_shared<bf16, kOperandAlignment>();
  if (threadIdx.x < 40) return;
  const Fragment left[kOperandBlocks] = {};
  Sums sums[4];
  multiply_by_rows(sums, left, tile);
  c[threadIdx.x] = sums[0].value[0];
}

TEST_CASE("warpgroup: a deadlock says who waits", "[simulated]") {
  DeviceFixture device;
  std::vector<float> c(kWarpgroupThreads);
  CHECK_THROWS_WITH(launch(device.step, {.blocks = 1, .threads = kWarpgroupThreads, .shared_bytes = kTile},
                           half_a_warpgroup, c.data()),
                    Catch::Matchers::ContainsSubstring("multiply_by_rows: threads 40-127"));
}

}  // namespace
}  // namespace engram::cuda::tests
