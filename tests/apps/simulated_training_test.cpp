/// Training on the simulated device: the same losses as on the CPU, dropout included.

#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/training/training_run.hpp"
#include "core/error.hpp"
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

}  // namespace
}  // namespace engram::harness
