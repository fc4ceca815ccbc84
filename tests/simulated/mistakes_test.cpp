/// Every mistake that the engine itself can see is reported, with the places in the source, in every order, and the
/// next launch works. Mistakes that only a sanitizer sees: tests/simulated/sanitized_program.cpp.

#include <array>
#include <cmath>

#include "core/scope.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/sanitizers.hpp"
#include "tests/simulated/broken_kernels.hpp"
#include "tests/simulated/device_fixture.hpp"

namespace engram::cuda::tests {
namespace {

struct Launch {
  LaunchSize size;
  void (*kernel)(float*, int);
  int argument = 0;
};

std::string report_of(DeviceFixture& device, const Launch& run) {
  std::vector<float> y(1024, -7);
  try {
    launch(device.step, run.size, run.kernel, y.data(), run.argument);
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "no report";
}

void count_block(float* y, int) { y[threadIdx.x] = block_sum<64>(1.0f); }

/// In every order there must be a report with these parts, and the device must work afterwards.
void require_report(const Launch& run, const std::vector<std::string>& parts) {
  DeviceFixture device;
  for (const simulated::RunOptions& options : run_orders()) {
    device.options() = options;
    for (int repetition = 0; repetition < 2; ++repetition) {
      const std::string report = report_of(device, run);
      for (const std::string& part : parts) {
        INFO(report);
        CHECK(report.find(part) != std::string::npos);
      }
      std::array<float, 64> y{};
      launch(device.step, {.blocks = 3, .threads = 64}, count_block, y.data(), 0);
      for (const float value : y) CHECK(value == 64);
    }
  }
}

const std::string kHere = "tests/simulated/broken_kernels.hpp:";

TEST_CASE("mistakes: a missing barrier gives wrong numbers as soon as threads do not run in order", "[simulated]") {
  if (harness::thread_sanitizer_watches()) return;  // it reports the race, and is right
  DeviceFixture device;
  constexpr int kCount = 64;
  for (const simulated::RunOptions& options : run_orders()) {
    device.options() = options;
    std::vector<float> y(kCount);
    launch(device.step, {.blocks = 1, .threads = kCount, .shared_bytes = kCount * sizeof(float)}, missing_barrier,
           y.data(), 0);
    int wrong = 0;
    for (int t = 0; t < kCount; ++t) wrong += !(y[static_cast<std::size_t>(t)] == static_cast<float>(t - 1));
    if (options.order == simulated::RunOrder::forward)
      CHECK(wrong == 0);  // what makes the mistake hard to find
    else
      CHECK(wrong > 0);
    // Poisoned memory shows: what was read too early is a NaN, not a zero.
    if (options.order == simulated::RunOrder::reversed) CHECK(std::isnan(y[1]));
  }
}

TEST_CASE("mistakes: a write after a read gives wrong numbers as soon as threads do not run in order", "[simulated]") {
  if (harness::thread_sanitizer_watches()) return;  // it reports the race, and is right
  DeviceFixture device;
  constexpr int kCount = 64, kRounds = 3;
  for (const simulated::RunOptions& options : run_orders()) {
    device.options() = options;
    std::vector<float> y(kCount);
    launch(device.step, {.blocks = 1, .threads = kCount, .shared_bytes = kCount * sizeof(float)}, write_after_read,
           y.data(), kRounds);
    int wrong = 0;
    for (int t = 0; t + 1 < kCount; ++t) wrong += y[static_cast<std::size_t>(t)] != 3;
    CHECK((wrong == 0) == (options.order == simulated::RunOrder::forward));
  }
}

TEST_CASE("mistakes: threads at different barriers", "[simulated]") {
  require_report(
      {{.blocks = 1, .threads = 32}, divergent_barrier},
      {"launch: all threads of a block must wait at one barrier, got thread ", kHere, ": __syncthreads and thread ",
       ": __syncthreads\n", "of block (0, 0, 0); the kernel was started at tests/simulated/mistakes_test.cpp:"});
}

TEST_CASE("mistakes: a lane outside its own mask", "[simulated]") {
  require_report({{.blocks = 2, .threads = 32}, caller_outside_mask},
                 {"launch: a lane must be in its own mask, got lane 20 and mask 0x0000ffff at " + kHere,
                  "__shfl_sync\n  by thread (20, 0, 0) of block ("});
}

TEST_CASE("mistakes: masks that differ", "[simulated]") {
  require_report({{.blocks = 1, .threads = 32}, masks_differ},
                 {"lanes that wait for each other must give one mask, got 0x", "0x7fffffff", "0xffffffff", kHere});
}

TEST_CASE("mistakes: a source lane outside the mask", "[simulated]") {
  require_report({{.blocks = 1, .threads = 32}, source_outside_mask},
                 {"a shuffle must read a lane of its mask, got lane ", " reading lane 16 with mask 0x0000ffff", kHere});
}

TEST_CASE("mistakes: one mask at two places", "[simulated]") {
  require_report({{.blocks = 1, .threads = 32}, calls_differ},
                 {"the lanes of a mask must make one call, got lane ", " and lane ", kHere});
}

TEST_CASE("mistakes: a full mask when lanes have exited", "[simulated]") {
  require_report({{.blocks = 1, .threads = 32}, exited_lane, 20},
                 {"a mask must not name a lane that has exited, got mask 0xffffffff",
                  "cuda/warp.cuh:", "__shfl_xor_sync", "returned from the kernel"});
}

TEST_CASE("mistakes: a full mask in a block whose last warp is not full", "[simulated]") {
  require_report({{.blocks = 1, .threads = 48}, exited_lane, 48},
                 {"a mask must name lanes of the block, got mask 0xffffffff", "whose lane 16 has no thread"});
}

TEST_CASE("mistakes: a deadlock says who waits where", "[simulated]") {
  require_report({{.blocks = 1, .threads = 32}, deadlock},
                 {"threads must not wait for each other for ever, got a block of 32 threads of which 1 have exited",
                  "__syncthreads: threads 0-15", "__shfl_sync: threads 16-30, mask 0x7fffffff, for lanes 0-15",
                  "in block (0, 0, 0)"});
}

TEST_CASE("mistakes: the width of a shuffle", "[simulated]") {
  require_report({{.blocks = 1, .threads = 32}, width_of_shuffle},
                 {"must be 1, 2, 4, 8, 16 or 32, got 12 at " + kHere});
}

TEST_CASE("mistakes: dynamic shared memory that was not asked for", "[simulated]") {
  require_report({{.blocks = 1, .threads = 32}, shared_overrun, 0}, {"must be launched with shared_bytes, got 0"});
}

TEST_CASE("mistakes: a write behind the dynamic shared memory", "[simulated]") {
  if (harness::address_sanitizer_watches()) return;  // the program ends at the write itself
  for (const int n : {1, 13, 64})
    require_report({{.blocks = 1, .threads = 32, .shared_bytes = static_cast<std::size_t>(n) * 4}, shared_overrun, n},
                   {text("must stay inside its dynamic shared memory, got a write behind the ", n * 4, " bytes"),
                    "in block (0, 0, 0)"});
}

TEST_CASE("mistakes: a kernel that throws", "[simulated]") {
  require_report({{.blocks = 1, .threads = 32}, throws},
                 {"a kernel must not throw, got an exception: number 5", "by thread (5, 0, 0)"});
}

TEST_CASE("mistakes: the report is that of the first block in the order of the run", "[simulated]") {
  DeviceFixture device;
  for (int repetition = 0; repetition < 20; ++repetition) {
    device.options() = {};
    CHECK(report_of(device, {{.blocks = {5, 3}, .threads = 32}, divergent_barrier}).find("block (0, 0, 0)") !=
          std::string::npos);
    device.options() = {.order = simulated::RunOrder::reversed};
    CHECK(report_of(device, {{.blocks = {5, 3}, .threads = 32}, divergent_barrier}).find("block (4, 2, 0)") !=
          std::string::npos);
  }
}

TEST_CASE("mistakes: the scope is in the report", "[simulated]") {
  DeviceFixture device;
  const Scope scope("layers.3");
  CHECK(report_of(device, {{.blocks = 1, .threads = 32}, divergent_barrier}).starts_with("[layers.3] launch: all "));
}

}  // namespace
}  // namespace engram::cuda::tests
