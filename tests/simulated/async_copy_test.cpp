/// Asynchronous copies: what arrives, and every mistake that a card would answer with old numbers now and then. Those
/// that only a sanitizer sees: tests/simulated/sanitized_program.cpp.

#include "cuda/async_copy.cuh"

#include <cmath>
#include <string>
#include <vector>

#include "cuda/shared.cuh"
#include "cuda/warpgroup.cuh"
#include "tests/harness/catch.hpp"
#include "tests/harness/sanitizers.hpp"
#include "tests/simulated/broken_kernels.hpp"
#include "tests/simulated/device_fixture.hpp"

namespace engram::cuda::tests {
namespace {

constexpr int kThreadCount = 32;
constexpr LaunchSize kSize{.blocks = 1, .threads = kThreadCount, .shared_bytes = 16 * kThreadCount};

/// What comes of it, and what is said.
struct Result {
  std::vector<float> y;
  std::string report = "no report";
};
Result run_copies(CopyMistake mistake, const simulated::RunOptions& options) {
  DeviceFixture device;
  device.options() = options;
  Result result;
  for (int i = 0; i < 4 * kThreadCount + 4; ++i) result.y.push_back(static_cast<float>(i));
  try {
    launch(device.step, kSize, broken_copy, result.y.data(), static_cast<int>(mistake));
  } catch (const DeviceError& error) {
    result.report = error.what();
  }
  return result;
}

TEST_CASE("asynchronous copies: what was copied is there behind the wait and a barrier", "[simulated]") {
  for (const simulated::RunOptions& options : run_orders()) {
    const Result result = run_copies(CopyMistake::none, options);
    CHECK(result.report == "no report");
    for (int t = 0; t < kThreadCount; ++t)
      CHECK(result.y[static_cast<std::size_t>(t)] == 4.0f * ((t + 1) % kThreadCount));
  }
}

TEST_CASE("asynchronous copies: what is read too early is wrong in every order", "[simulated]") {
  if (harness::address_sanitizer_watches() || harness::thread_sanitizer_watches()) return;  // they report it
  for (const simulated::RunOptions& options : run_orders()) {
    const std::vector<float> early = run_copies(CopyMistake::reads_early, options).y;
    for (int t = 0; t < kThreadCount; ++t) CHECK(std::isnan(early[static_cast<std::size_t>(t)]));
    // Whether another thread has waited, or has copied already what this one is to read first, depends on the order: of
    // some in every order.
    for (const CopyMistake mistake : {CopyMistake::no_barrier, CopyMistake::target_read}) {
      const Result result = run_copies(mistake, options);
      CHECK(result.report == "no report");
      const std::vector<float>& y = result.y;
      int wrong = 0;
      for (int t = 0; t < kThreadCount; ++t) {
        const int next = (t + 1) % kThreadCount, before = mistake == CopyMistake::target_read ? 1 : 0;
        wrong += y[static_cast<std::size_t>(t)] == static_cast<float>(4 * next + before) ? 0 : 1;
      }
      CAPTURE(static_cast<int>(mistake));
      CHECK(wrong > 0);
    }
  }
}

TEST_CASE("asynchronous copies: mistakes are reported", "[simulated]") {
  const std::pair<CopyMistake, std::string> all[] = {
      {CopyMistake::target_written,
       "the target of an asynchronous copy must not be written until the thread has waited, got byte "},
      {CopyMistake::not_waited,
       "a thread must wait for its asynchronous copies before it ends, got 1 under way, the first begun at "
       "cuda/async_copy.cuh"},
      {CopyMistake::two_copies, "an asynchronous copy must not begin where another one is under way, got byte "},
      {CopyMistake::misaligned_from, "an asynchronous copy must be from and to multiples of 16 bytes, got byte "},
      {CopyMistake::misaligned_to, "an asynchronous copy must be from and to multiples of 16 bytes, got byte "},
      {CopyMistake::from_null, "an asynchronous copy must be from memory, got null at cuda/async_copy.cuh"},
      {CopyMistake::outside,
       "an asynchronous copy must be into the block's 512 bytes of dynamic shared memory, got another address at "},
  };
  for (const auto& [mistake, wanted] : all) {
    if (mistake == CopyMistake::target_written && harness::address_sanitizer_watches()) continue;  // it ends there
    for (const simulated::RunOptions& options : run_orders()) {
      CAPTURE(static_cast<int>(mistake));
      CHECK_THAT(run_copies(mistake, options).report, Catch::Matchers::ContainsSubstring(wanted));
    }
  }
}

/// What a kernel can do too early where the target is the operand of a product by a warpgroup.
enum class OperandMistake : int { none, fence_before_wait, begins_before_barrier };

__global__ void multiply_copied(OperandMistake mistake, const bf16* rows, float* c) {
  bf16* const tile = dynamic_shared<bf16, kOperandAlignment>();
  const auto copy = [&] {
    for (int i = static_cast<int>(threadIdx.x); i < 64 * 8; i += kWarpgroupThreads)
      copy_operand(tile, i / 8, i % 8 * 8, rows + 8 * i);
  };
  copy();
  if (mistake == OperandMistake::fence_before_wait) operands_stored();
  wait_for_copies();
  if (mistake != OperandMistake::fence_before_wait) operands_stored();
  __syncthreads();
  Fragment left[kOperandBlocks];
  for (Fragment& block : left)
    for (std::uint32_t& word : block.word) word = rounded_pair(1, 1);
  Sums sums[4];
  multiply_by_rows(sums, left, tile);
  if (mistake == OperandMistake::begins_before_barrier) {
    copy();
    wait_for_copies();
  }
  if (threadIdx.x >= 4) return;  // which have row 0
  for (int e = 0; e < 8; ++e)
    if (Sums::row_of(e) == 0) c[Sums::column_of(e)] = sums[0].value[e];
}

TEST_CASE("asynchronous copies: into an operand of a product by a warpgroup", "[simulated]") {
  std::vector<bf16> rows(64 * 64);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = bf16(static_cast<float>(i / 64));
  const auto report_of = [&](OperandMistake mistake, const simulated::RunOptions& options, std::vector<float>& c) {
    DeviceFixture device;
    device.options() = options;
    try {
      launch(device.step, {.blocks = 1, .threads = kWarpgroupThreads, .shared_bytes = 64 * 64 * sizeof(bf16)},
             multiply_copied, mistake, rows.data(), c.data());
    } catch (const DeviceError& error) {
      return std::string(error.what());
    }
    return std::string("no report");
  };
  for (const simulated::RunOptions& options : run_orders()) {
    std::vector<float> c(16);
    CHECK(report_of(OperandMistake::none, options, c) == "no report");
    for (std::size_t i = 0; i < c.size(); ++i) CHECK(c[i] == 64.0f * static_cast<float>(i));
    CHECK_THAT(report_of(OperandMistake::fence_before_wait, options, c),
               Catch::Matchers::ContainsSubstring("which was not fenced by the thread that wrote it"));
    CHECK_THAT(report_of(OperandMistake::begins_before_barrier, options, c),
               Catch::Matchers::ContainsSubstring(
                   "a barrier must come between a product and the next write to its operand, got a write to byte "));
  }
}

}  // namespace
}  // namespace engram::cuda::tests
