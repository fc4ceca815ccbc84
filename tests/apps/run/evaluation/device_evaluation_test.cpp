/// Evaluation with products of bf16, as a card does it unless it is told otherwise.

#include "core/files/json.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/apps/run/other_devices.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::device_evaluation_test {
namespace {

TEST_CASE("evaluation rounds operands of products where --dtype says so, on every device") {
  const RunFolder folder;
  TrainingRunOptions options = run_options(folder, "run");
  options.overrides = {"schedule.steps=6", "schedule.warmup=1", "training.validate_blocks=1"};
  run_training(options, never());
  const auto nll = [&](const std::string& device, const std::string& dtype) {
    const ProcessResult result = run_engram({"evaluate", options.out.string(), "--data", folder.data().string(),
                                             "--exact", "--device", device, "--dtype", dtype, "--json"});
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return nlohmann::json::parse(result.out).at("nll").get<double>();
  };
  const double exact = nll("cpu", "f32");
  CHECK(nll("cpu", "f64") == Approx(exact).epsilon(1e-5));
  std::vector<std::string> devices{"cpu"};
  if (has_simulated_device()) devices.emplace_back("simulated");
  for (const std::string& device : devices) {
    CAPTURE(device);
    const double rounded = nll(device, "bf16");
    CHECK(rounded == Approx(exact).epsilon(0.01));
    CHECK(std::abs(rounded - exact) > 1e-6);
    if (device != "cpu") CHECK(nll(device, "f32") == Approx(exact).epsilon(1e-5));
  }
}

}  // namespace
}  // namespace engram::harness::device_evaluation_test
