/// Continuing a run with another longest span: [all-attention 11].

#include <map>

#include "apps/run/model/trained_model.hpp"
#include "core/error.hpp"
#include "nn/checkpoint.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/op_run.hpp"

namespace engram::harness::resize_span_test {
namespace {

/// All tensors of a checkpoint under their names.
std::map<std::string, reference::Array64> tensors_of(const std::filesystem::path& path) {
  Runtime runtime;
  const CheckpointFile file(path);
  std::map<std::string, reference::Array64> found;
  for (const std::string& name : file.names()) {
    const Tensor tensor(file.at(name).shape, file.at(name).dtype, runtime.backend().device(), runtime.memory());
    file.load(runtime.backend(), std::vector<NamedTensor>{{name, tensor}}, {.may_be_ignored = {""}});
    found[name] = to_host(runtime.backend(), tensor);
  }
  return found;
}

/// A run of six steps in the folder, resumed at `max_span` with a rate of 0, so that only the new length changes it.
struct Resized {
  std::map<std::string, reference::Array64> before, after;

  Resized(const RunFolder& folder, std::int64_t max_span, std::vector<std::string> overrides) {
    TrainingRunOptions options = run_options(folder, text("run", max_span));
    overrides.push_back("model.span_init=0.5");
    overrides.push_back("schedule.steps=6");
    options.overrides = overrides;
    run_training(options, never());
    const auto path = checkpoint_path(options.out, CheckpointKind::newest);
    before = tensors_of(path);
    options.resume = true;
    options.overrides.push_back(text("model.max_span=", max_span));
    options.overrides.push_back("schedule.steps=7");
    options.overrides.push_back("schedule.finetune_share=0");
    CHECK_THROWS_WITH(run_training(options, never()),
                      ContainsSubstring("model.max_span: 48 -> ") && ContainsSubstring("--resize-span"));
    options.resize_span = true;
    options.overrides.push_back("schedule.steps=6");
    options.overrides.push_back("training.finetune_steps=1");
    run_training(options, never());
    after = tensors_of(path);
    const auto kept = tensors_of(path.parent_path() / "before-resize-48-step-6.safetensors");
    REQUIRE(kept.size() == before.size());
    for (const auto& [name, values] : before) CHECK(kept.at(name).data == values.data);
  }
};

TEST_CASE("another longest span keeps the nearest positions and every head's span in positions") {
  const RunFolder folder;
  for (const std::int64_t max_span : {20, 96}) {
    CAPTURE(max_span);
    const Resized run(folder, max_span, {});
    const double growth = static_cast<double>(max_span) / 48;
    const auto& positions = run.after.at("position_keys");
    REQUIRE(positions.shape == std::vector<std::int64_t>{max_span, 8});
    for (std::int64_t row = 0; row < std::min<std::int64_t>(48, max_span); ++row)
      CHECK(positions.at(row, std::int64_t{3}) == run.before.at("position_keys").at(row, std::int64_t{3}));
    if (max_span > 48) CHECK(std::abs(positions.at(std::int64_t{90}, std::int64_t{1})) > 1e-6);  // as in a new run
    for (const std::int64_t head : {0, 1}) {
      const double zeta = run.before.at("layers.1.attention.span").at(head);
      CHECK(zeta > 0.2);
      CHECK(run.after.at("layers.1.attention.span").at(head) == Approx(std::min(1.0, zeta / growth)).epsilon(1e-6));
    }
    CHECK(run.after.at("layers.0.attention.query").data == run.before.at("layers.0.attention.query").data);
  }
}

TEST_CASE("a span's optimiser state follows its unit") {
  const RunFolder folder;
  // Adam with decay rates of almost 1: the step after the resize changes its moments by almost nothing.
  const Resized run(folder, 96,
                    {"optimizer.kind=adam", "optimizer.clip=1", "schedule.rate=0.001", "optimizer.beta1=0.999999",
                     "optimizer.beta2=0.999999", "training.span_loss=0.01"});
  const std::string name = "optimizer/layers.0.attention.span.";
  for (const std::int64_t head : {0, 1}) {
    CHECK(run.after.at(name + "first_moment").at(head) ==
          Approx(2 * run.before.at(name + "first_moment").at(head)).epsilon(0.3));
    CHECK(run.after.at(name + "second_moment").at(head) ==
          Approx(4 * run.before.at(name + "second_moment").at(head)).epsilon(0.3));
  }
}

}  // namespace
}  // namespace engram::harness::resize_span_test
