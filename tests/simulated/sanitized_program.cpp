/// Runs one kernel on the simulated device, in a program built with a sanitizer: `sanitized_program NAME`. The
/// sanitizer's report is the result; ctest requires it for broken kernels, and none for "correct".

#include <cstdio>
#include <memory>
#include <string>

#include "tests/simulated/broken_kernels.hpp"
#include "tests/simulated/correct_kernels.hpp"

namespace engram::cuda::tests {
namespace {

struct BrokenRun {
  const char* name;
  LaunchSize size;
  void (*kernel)(float*, int);
  int argument;
};

constexpr int kCount = 128;
constexpr LaunchSize kCopies{.blocks = 1, .threads = 32, .shared_bytes = kCount * 4};
const BrokenRun kBroken[] = {
    {"missing_barrier", {.blocks = 1, .threads = kCount, .shared_bytes = kCount * 4}, missing_barrier, 0},
    {"write_after_read", {.blocks = 1, .threads = kCount, .shared_bytes = kCount * 4}, write_after_read, 3},
    {"shuffle_as_barrier", {.blocks = 1, .threads = kCount, .shared_bytes = kCount * 4}, shuffle_as_barrier, 0},
    {"blocks_write_one_address", {.blocks = 4, .threads = kCount}, blocks_write_one_address, 0},
    {"shared_overrun", {.blocks = 1, .threads = 32, .shared_bytes = kCount * 4}, shared_overrun, kCount},
    {"global_overrun", {.blocks = 1, .threads = 32}, global_overrun, kCount},
    {"copy_without_barrier", kCopies, broken_copy, static_cast<int>(CopyMistake::no_barrier)},
    {"copy_into_what_is_read", kCopies, broken_copy, static_cast<int>(CopyMistake::target_read)},
    {"copy_read_early", kCopies, broken_copy, static_cast<int>(CopyMistake::reads_early)},
    {"misaligned_vector", {.blocks = 1, .threads = 8}, misaligned_vector, 0},
};

int run(const std::string& name) {
  DeviceFixture device;
  if (name == "correct") {
    const std::vector<float> wanted = run_correct_kernels(device, 5);
    for (const simulated::RunOptions& options : run_orders()) {
      device.options() = options;
      if (run_correct_kernels(device, 5) != wanted) {
        std::puts("the bits depend on the order");
        return 1;
      }
    }
    std::puts("correct kernels ran clean");
    return 0;
  }
  if (name == "mistake") {  // an error in the middle, then correct kernels: what was suspended must not be reported
    for (int repetition = 0; repetition < 3; ++repetition)
      for (void (*kernel)(float*, int) : {divergent_barrier, exited_lane, deadlock, throws}) {
        std::vector<float> y(kCount);
        try {
          launch(device.step, {.blocks = 1, .threads = 32}, kernel, y.data(), 20);
          std::puts("no report");
          return 1;
        } catch (const DeviceError& error) {
          std::puts(error.what());
        }
        run_correct_kernels(device, 3);
      }
    std::puts("correct kernels ran clean");
    return 0;
  }
  for (const BrokenRun& broken : kBroken) {
    if (name != broken.name) continue;
    const auto y = std::make_unique<float[]>(kCount);
    launch(device.step, broken.size, broken.kernel, y.get(), broken.argument);
    std::puts("no report");
    return 0;
  }
  std::puts("unknown kernel");
  return 2;
}

}  // namespace
}  // namespace engram::cuda::tests

int main(int argc, char** argv) { return engram::cuda::tests::run(argc > 1 ? argv[1] : ""); }
