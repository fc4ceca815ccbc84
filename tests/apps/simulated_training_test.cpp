/// Training on the simulated device: the same losses as on the CPU, dropout included.

#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/training/training_run.hpp"
#include "core/error.hpp"
#include "nn/checkpoint.hpp"
#include "tests/apps/run_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness {
namespace {

/// Presets of sanitizers leave the device out (docs/architecture.md).
bool has_simulated_device() {
  try {
    open_backend(parse_device("simulated"));
    return true;
  } catch (const NotAvailable&) {
    return false;
  }
}

/// Every number of a run's metrics that is called `name`.
std::vector<double> metrics(const std::filesystem::path& run, const char* name) {
  std::istringstream lines(get_file(run / "metrics.jsonl"));
  std::vector<double> found;
  for (std::string line; std::getline(lines, line);) {
    const auto object = nlohmann::json::parse(line);
    if (object.contains(name)) found.push_back(object[name].get<double>());
  }
  return found;
}

TEST_CASE("a few steps on the simulated device have the CPU's losses, gradients and spans") {
  if (!has_simulated_device()) {
    WARN("this build has no simulated device (ENGRAM_SIMULATED=OFF)");
    return;
  }
  const RunFolder folder;
  TrainingRunOptions options = run_options(folder, "cpu");
  options.overrides = {"schedule.steps=4", "schedule.warmup=1", "training.report_every=1", "training.validate_every=2",
                       "model.span_init=0.3"};
  run_training(options, never());
  options.out = folder / "simulated";
  options.device = parse_device("simulated");
  run_training(options, never());
  for (const char* name : {"nll", "gradient_norm", "span_mean"}) {
    const std::vector<double> wanted = metrics(folder / "cpu", name), got = metrics(options.out, name);
    CAPTURE(name);
    REQUIRE(wanted.size() >= 4);
    REQUIRE(got.size() == wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(got[i] == Approx(wanted[i]).epsilon(2e-5));
  }
}

TEST_CASE("bf16 activations on the simulated device: losses near those of f32, and a run that goes on as it was") {
  if (!has_simulated_device()) return;
  const RunFolder folder;
  const auto options_of = [&](const char* name, const char* activations) {
    TrainingRunOptions options = run_options(folder, name);
    options.device = parse_device("simulated");
    options.overrides = {"schedule.steps=4",        "schedule.warmup=1",
                         "training.report_every=1", "training.validate_every=2",
                         "model.span_init=0.3",     text("training.activations=", activations)};
    return options;
  };
  try {
    run_training(options_of("bf16", "bf16"), never());
  } catch (const NotAvailable& lacking) {
    WARN(lacking.what());
    return;
  }
  run_training(options_of("f32", "f32"), never());
  const std::vector<double> bf16 = metrics(folder / "bf16", "nll"), f32 = metrics(folder / "f32", "nll");
  REQUIRE(bf16.size() == f32.size());
  for (std::size_t i = 0; i < f32.size(); ++i) CHECK(bf16[i] == Approx(f32[i]).epsilon(0.02));
  CHECK(bf16 != f32);

  TrainingRunOptions halves = options_of("halves", "bf16");
  CHECK_THROWS_AS(run_training(halves, after_steps(2)), Error);
  halves.resume = true;
  halves.overrides.pop_back();
  run_training(halves, never());
  CHECK(get_file(checkpoint_path(halves.out, CheckpointKind::newest)) ==
        get_file(checkpoint_path(folder / "bf16", CheckpointKind::newest)));
  CHECK(load_run_config(folder / "halves" / "config.toml").training.activations == ActivationPrecision::bf16);
}

}  // namespace
}  // namespace engram::harness
