/// How many kernels, products and copies a training step of the largest configuration hands to a card. Counted on the
/// simulated device at a smaller width, and with fewer slots, tokens and positions: none of these matters, layers do,
/// and each adds as many as the one before.

#include "apps/run/config/run_config_file.hpp"
#include "apps/studies/bench/kernel_times.hpp"
#include "apps/studies/bench/rehearsal.hpp"
#include "core/launch_count.hpp"
#include "tests/apps/run/other_devices.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::launches_test {
namespace {

constexpr std::int64_t kLayers = 36;
constexpr const char* kConfig = ENGRAM_SOURCE_DIR "/apps/configs/all-attention/enwik8-all-attention-large.toml";

std::int64_t launches_of_step(std::int64_t layers, const char* split) {
  const RunConfig whole = load_run_config(kConfig);
  CHECK(whole.model.all_attention.layers == kLayers);
  CHECK(whole.model.all_attention.heads == 8);
  BenchCase bench{"large",
                  load_run_config(kConfig, {text("model.layers=", layers), text("training.split=", split),
                                            "model.slots=16", "model.width=128", "model.max_span=16", "model.ramp=8",
                                            "training.batch=2", "training.block=16", "training.activations=bf16"}),
                  {}};
  Runtime runtime(parse_device("simulated"));
  Rehearsal rehearsal(bench, runtime);
  rehearsal.train(1, nullptr, false);  // fills the caches: there is something to project from now on
  KernelTimes kernels(runtime.backend());
  const std::int64_t before = launch_count(runtime.backend());
  rehearsal.train(1, &kernels, false);
  const std::int64_t all = launch_count(runtime.backend()) - before;
  // A layer's keys and values, of all heads.
  const auto& totals = kernels.totals();
  const std::int64_t pieces = bench.config.training.split;
  CHECK(totals.at("project_past_forward").launches == layers * pieces);
  CHECK(totals.at("project_past_backward").launches == 2 * layers * pieces);
  std::int64_t in_kernels = 0;
  for (const auto& [name, total] : totals) in_kernels += total.launches;
  CHECK(in_kernels <= all);
  CHECK(in_kernels + 10 >= all);  // losses are kept by copies
  return all;
}

/// Of 36 layers, by what the third one adds to two.
std::int64_t launches_of_all(const char* split) {
  const std::int64_t two = launches_of_step(2, split), three = launches_of_step(3, split);
  CAPTURE(two, three);
  CHECK(three > two);
  return two + (kLayers - 2) * (three - two);
}

TEST_CASE("launches of the largest step: at most 1,200 in one piece, 2,500 in the two that its file has") {
  if (!has_simulated_device()) return;
  const std::int64_t one = launches_of_all("1");
  CHECK(one > 500);
  CHECK(one <= 1200);
  CHECK(launches_of_all("2") <= 2500);
}

}  // namespace
}  // namespace engram::harness::launches_test
