/// Products of 16x16 blocks by a warp: every element of every operand is where cuda/mma.cuh says.

#include "cuda/mma.cuh"

#include <array>
#include <cmath>
#include <vector>

#include "cuda/shared.cuh"
#include "tests/harness/catch.hpp"
#include "tests/simulated/device_fixture.hpp"

namespace engram::cuda::tests {
namespace {

constexpr int kStride = 24;  // of blocks in memory
using Block = std::array<float, 256>;

/// What operands are read as: b, transposed b, or a product as the left operand of a second one.
enum class Way : int { rows, transposed, chained };

__global__ void multiply_blocks(const float* a, const float* b, Way way, float* c) {
  bf16* const left = dynamic_shared<bf16>();
  bf16* const right = left + 16 * kStride;
  for (int i = static_cast<int>(threadIdx.x); i < 256; i += kWarpLanes) {
    left[i / 16 * kStride + i % 16] = bf16(a[i]);
    right[i / 16 * kStride + i % 16] = bf16(b[i]);
  }
  __syncwarp();
  const Fragment x = load_fragment(left, kStride);
  const RightFragment y = way == Way::transposed ? load_right_transposed(right, kStride) : load_right(right, kStride);
  Sums sums;
  for (int e = 0; e < 8; ++e) sums.value[e] = 0.5f;
  multiply_add(sums, x, y);
  if (way == Way::chained) {
    const Fragment first = fragment(sums);
    sums = {};
    multiply_add(sums, first, y);
  }
  for (int e = 0; e < 8; ++e) c[Sums::row_of(e) * 16 + Sums::column_of(e)] = sums.value[e];
}

TEST_CASE("mma: products of blocks", "[simulated]") {
  DeviceFixture device;
  Block a, b;
  // Small whole numbers: exact in bf16, and so are their sums up to 256.
  for (int i = 0; i < 256; ++i) {
    a[static_cast<std::size_t>(i)] = static_cast<float>(i * 7 % 11 - 5);
    b[static_cast<std::size_t>(i)] = static_cast<float>(i * 5 % 3 - 1);
  }
  const auto at = [](const Block& x, int row, int column) { return x[static_cast<std::size_t>(row * 16 + column)]; };
  for (const Way way : {Way::rows, Way::transposed, Way::chained})
    for (const simulated::RunOptions& options : run_orders()) {
      device.options() = options;
      Block c{}, wanted{};
      for (int row = 0; row < 16; ++row)
        for (int column = 0; column < 16; ++column) {
          float sum = 0.5f;
          for (int k = 0; k < 16; ++k)
            sum += at(a, row, k) * (way == Way::transposed ? at(b, k, column) : at(b, column, k));
          wanted[static_cast<std::size_t>(row * 16 + column)] = sum;
        }
      if (way == Way::chained) {
        const Block first = wanted;
        for (int row = 0; row < 16; ++row)
          for (int column = 0; column < 16; ++column) {
            float sum = 0;
            for (int k = 0; k < 16; ++k) sum += at(first, row, k) * at(b, column, k);
            wanted[static_cast<std::size_t>(row * 16 + column)] = sum;
          }
      }
      launch(device.step, {.blocks = 1, .threads = 32, .shared_bytes = 2 * 16 * kStride * sizeof(bf16)},
             multiply_blocks, a.data(), b.data(), way, c.data());
      INFO("way " << static_cast<int>(way));
      CHECK(c == wanted);
    }
}

__global__ void pack_numbers(const float* x, std::uint32_t* y) { *y = rounded_pair(x[0], x[1]); }

TEST_CASE("mma: two numbers in a word, rounded to even", "[simulated]") {
  DeviceFixture device;
  const float x[] = {1.00390625f, -3.14159274f};
  std::uint32_t y = 0;
  launch(device.step, {.blocks = 1, .threads = 1}, pack_numbers, x, &y);
  CHECK((y & 0xffffu) == bf16(1.0f).bits);
  CHECK(y >> 16 == bf16(-3.140625f).bits);
}

}  // namespace
}  // namespace engram::cuda::tests
