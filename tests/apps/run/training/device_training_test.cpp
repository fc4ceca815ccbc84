/// Training on devices other than the CPU: the same losses as there, dropout included, and what only they have: steps
/// that are replayed, memory that ends.

#include <sstream>
#include <utility>

#include "apps/run/config/run_config_file.hpp"
#include "apps/run/training/run_checkpoint.hpp"
#include "apps/run/training/session.hpp"
#include "apps/run/training/training_loop.hpp"
#include "apps/run/training/training_run.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "core/kernels/fill.hpp"
#include "nn/checkpoint.hpp"
#include "tests/apps/run/other_devices.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/apps/run/run_metrics.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/op_run.hpp"
#include "tests/harness/simulated_limits.hpp"

namespace engram::harness::device_training_test {
namespace {

TEST_CASE("steps on every device have the CPU's losses, gradients and spans, replayed ones as well", "[gpu]") {
  const RunFolder folder;
  TrainingRunOptions options = run_options(folder, "cpu");
  options.overrides = {"schedule.steps=12",         "schedule.warmup=1",          "training.report_every=1",
                       "training.validate_every=5", "training.validate_blocks=1", "training.batch=2",
                       "training.block=20",         "model.span_init=0.3"};
  run_training(options, never());
  for (const Device device : other_devices()) {
    CAPTURE(text(device));
    options.out = folder / std::string(name_of(device.kind));
    options.device = device;
    run_training(options, never());
    for (const char* name : {"nll", "gradient_norm", "span_mean"}) {
      const std::vector<double> wanted = metrics(folder / "cpu", name), got = metrics(options.out, name);
      CAPTURE(name);
      REQUIRE(wanted.size() >= 12);
      REQUIRE(got.size() == wanted.size());
      for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(got[i] == Approx(wanted[i]).epsilon(5e-5));
    }
    CHECK(metrics(options.out, "replayed_steps").at(0) >= 2);
  }
}

TEST_CASE("every variant has the CPU's losses on every device, and losses near them with bf16 activations", "[gpu]") {
  const std::vector<std::string> variants[] = {
      {"model.memory_mode=attn_split", "model.span=dynamic"},
      {"model.memory_mode=head_split", "model.position_values=own"},
      {"model.memory_mode=single_head", "model.span=fixed", "model.position_values=shared"},
      {"model.memory_mode=ff_attn", "model.slots=0", "model.inner=5"},
      {"model.memory_mode=head_split", "model.span=dynamic", "model.position_values=shared"}};
  int number = 0;
  for (const std::vector<std::string>& variant : variants) {
    CAPTURE(variant);
    const RunFolder folder;
    TrainingRunOptions options = run_options(folder, text("cpu", ++number));
    options.overrides = {"schedule.steps=4",           "schedule.warmup=1",  "training.report_every=1",
                         "training.validate_every=4",  "training.batch=2",   "training.block=10",
                         "training.validate_blocks=1", "model.span_init=0.3"};
    options.overrides.insert(options.overrides.end(), variant.begin(), variant.end());
    run_training(options, never());
    const std::vector<double> wanted = metrics(options.out, "nll");
    for (const Device device : other_devices())
      for (const char* activations : {"f32", "bf16"}) {
        CAPTURE(text(device), activations);
        TrainingRunOptions other = options;
        other.device = device;
        other.out = folder / text(name_of(device.kind), activations);
        other.overrides.push_back(text("training.activations=", activations));
        run_training(other, never());
        const std::vector<double> got = metrics(other.out, "nll");
        REQUIRE(got.size() == wanted.size());
        const double tolerance = std::string(activations) == "f32" ? 5e-5 : 0.03;
        for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(got[i] == Approx(wanted[i]).epsilon(tolerance));
      }
  }
}

TEST_CASE("bf16 activations on every device: losses near those of f32, and a run that goes on as it was", "[gpu]") {
  for (const Device device : other_devices()) {
    CAPTURE(text(device));
    const RunFolder folder;
    const auto options_of = [&](const char* name, const char* activations) {
      TrainingRunOptions options = run_options(folder, name);
      options.device = device;
      options.overrides = {
          "schedule.steps=4",           "schedule.warmup=1",   "training.report_every=1",
          "training.validate_every=2",  "training.batch=2",    "training.block=20",
          "training.validate_blocks=1", "model.span_init=0.3", text("training.activations=", activations)};
      return options;
    };
    run_training(options_of("bf16", "bf16"), never());
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
}

struct SimulatedRun {
  explicit SimulatedRun(std::vector<std::string> also = {}) : overrides(std::move(also)) {}

  const std::vector<std::string> overrides;
  const RunFolder folder;
  data::DataSet data = data::DataSet::open(folder.data());
  RunConfig config = resolved_config(parse_run_config(small_config(), "test", settings()), data);
  Runtime runtime{parse_device("simulated"), 0, config.training.seed};
  TrainingSession session{config, data, runtime, DType::f32};

  std::vector<std::string> settings() const {
    std::vector<std::string> all{"training.batch=2", "training.block=20", "training.split=1"};
    all.insert(all.end(), overrides.begin(), overrides.end());
    return all;
  }
  std::size_t& memory_limit() { return simulated::memory_limit_of(runtime.backend()); }
  /// Less than the next step needs, but enough for its first layer's new cache.
  void end_memory() {
    const Tensor& states = state_past(*session.trainer.pasts()[0][0]).states();
    memory_limit() = runtime.backend().reserved_bytes() + states.bytes();
  }
};

TEST_CASE("a step without memory leaves everything as it was") {
  if (!has_simulated_device()) return;
  SimulatedRun run, undisturbed;
  CHECK(run.session.step().nll == undisturbed.session.step().nll);
  run.end_memory();
  CHECK_THROWS_AS(run.session.step(), OutOfMemory);
  CHECK_THROWS_AS(run.session.step(), OutOfMemory);
  CHECK(run.session.trainer.steps() == 1);
  run.memory_limit() = SIZE_MAX;
  for (int step = 0; step < 3; ++step) CHECK(run.session.step().nll == undisturbed.session.step().nll);
}

TEST_CASE("a step that the device has no memory to capture goes on kernel by kernel") {
  if (!has_simulated_device()) return;
  SimulatedRun run, undisturbed;
  for (int step = 0; step < 12; ++step) {
    // Enough for every step, but not for a captured one.
    if (step == 1) run.memory_limit() = run.runtime.backend().reserved_bytes() + 16384;
    CHECK(run.session.step().nll == undisturbed.session.step().nll);
  }
  CHECK(run.session.trainer.replayed() == 0);
  CHECK(undisturbed.session.trainer.replayed() > 0);
}

TEST_CASE("a step without memory takes that of captured steps") {
  if (!has_simulated_device()) return;
  const std::vector<std::string> growing{"model.max_span=200", "model.span_init=0.01"};
  SimulatedRun run(growing), undisturbed(growing);
  for (SimulatedRun* one : {&run, &undisturbed}) {
    while (one->session.trainer.replayed() == 0) one->session.step();
    // Spans jump, so that the caches of a step after the next one need more than there is beside what was captured.
    Tensor spans = one->session.store.parameters().at("layers.0.attention.span")->value();
    kernels::fill(one->runtime.step(), spans, 1);
  }
  run.memory_limit() = run.runtime.backend().reserved_bytes() + 300'000;  // captured steps take more
  for (int step = 0; step < 6; ++step) CHECK(run.session.step().nll == undisturbed.session.step().nll);
  CHECK(run.session.trainer.steps() == undisturbed.session.trainer.steps());
}

TEST_CASE("a training run saves before it gives up for lack of memory") {
  if (!has_simulated_device()) return;
  SimulatedRun run, undisturbed;
  const std::filesystem::path out = run.folder / "run";
  std::filesystem::create_directories(out);
  const auto end_memory = [&run] {
    run.end_memory();
    return false;
  };
  try {
    train_to_the_end(run.session, out, false, end_memory);
    FAIL("the second step had memory");
  } catch (const OutOfMemory& error) {
    CHECK_THAT(error.what(), ContainsSubstring("saved at step 1; --resume goes on from there"));
  }
  CHECK(get_file(out / "metrics.jsonl").find("out_of_memory") != std::string::npos);
  SimulatedRun resumed;
  load_session(CheckpointFile(checkpoint_path(out, CheckpointKind::newest)), resumed.session);
  undisturbed.session.step();
  CHECK(resumed.session.step().nll == undisturbed.session.step().nll);

  // Without a step there is nothing to save, and the folder stays free.
  SimulatedRun none;
  none.memory_limit() = none.runtime.backend().reserved_bytes();
  const std::filesystem::path other = none.folder / "run";
  std::filesystem::create_directories(other);
  CHECK_THROWS_AS(train_to_the_end(none.session, other, false, never()), OutOfMemory);
  CHECK_FALSE(std::filesystem::exists(checkpoint_path(other, CheckpointKind::newest)));
}

}  // namespace
}  // namespace engram::harness::device_training_test
