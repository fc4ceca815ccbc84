/// Runs of models with product-key memories: training, checkpoints and devices.

#include "apps/run/config/run_config_file.hpp"
#include "apps/run/training/session.hpp"
#include "apps/terminal/signals.hpp"
#include "core/error.hpp"
#include "nn/checkpoint.hpp"
#include "tests/apps/run/other_devices.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/apps/run/run_metrics.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::product_key_memory_run_test {
namespace {

std::string memory_config() {
  return R"([model]
family = "product_key"
layers = 3
width = 16
heads = 2
position_rows = 24
[product_key]
count = 2
subkeys = 6
heads = 2
selected = 4
query_width = 8
[optimizer]
kind = "adam"
clip = 5
table_rate = 0.01
[schedule]
rate = 0.01
steps = 24
[training]
batch = 4
block = 20
validate_every = 3
validate_blocks = 2
report_every = 5
checkpoint_every = 10
seed = 11
)";
}

TrainingRunOptions overridden_run(const RunFolder& folder, const std::string& out, std::vector<std::string> overrides) {
  TrainingRunOptions options = run_options(folder, out);
  options.config = put_file(folder / "memory.toml", memory_config());
  options.overrides = std::move(overrides);
  return options;
}

struct Variant {
  std::vector<std::string> overrides;
  std::vector<int> stops;
};

TEST_CASE("memory run: stopped and resumed it is bit-identical to one that is not", "[product-key][night]") {
  const RunFolder folder;
  const Variant variant = GENERATE(
      Variant{{"product_key.query_dropout=0.1", "training.split=2"}, {1, 7}},
      Variant{{"optimizer.table_mode=dense", "optimizer.table_clip=0.1", "product_key.shared_values=true"}, {7}},
      Variant{{"optimizer.table_mode=row_step", "product_key.value_dtype=bf16"}, {7}},
      Variant{{"optimizer.table_mode=deferred", "optimizer.table_epsilon=0", "optimizer.table_weight_decay=0.3",
               "optimizer.table_follows_schedule=true", "schedule.decay=linear"},
              {7, 10, 13}},
      Variant{{"optimizer.table_mode=deferred", "optimizer.table_epsilon=0", "product_key.value_dtype=bf16",
               "training.checkpoint_every=3"},
              {1, 7}},
      Variant{{"optimizer.table_kind=row_adagrad", "product_key.keys=flat", "product_key.placement=beside"}, {7}});
  CAPTURE(variant.overrides);
  const TrainingRunOptions whole = overridden_run(folder, "whole", variant.overrides);
  run_training(whole, never());
  for (const int steps : variant.stops) {
    TrainingRunOptions parts = overridden_run(folder, text("parts", steps), variant.overrides);
    CHECK_THROWS_AS(run_training(parts, after_steps(steps)), Interrupted);
    parts.resume = true;
    run_training(parts, never());
    CHECK(newest_checkpoint(parts) == newest_checkpoint(whole));
  }
}

TEST_CASE("memory run: it learns, and another kind of update of its tables is refused", "[product-key][night]") {
  const RunFolder folder(20000);
  TrainingRunOptions options =
      overridden_run(folder, "run", {"schedule.steps=120", "training.report_every=20", "training.validate_every=1000"});
  run_training(options, never());
  const std::vector<double> nll = metrics(options.out, "nll");
  REQUIRE(nll.size() >= 6);
  CHECK(nll.back() < 0.75 * nll.front());
  options.resume = true;
  options.overrides = {"optimizer.table_mode=dense"};
  CHECK_THROWS_WITH(run_training(options, never()), ContainsSubstring("optimizer.table_mode"));
}

TEST_CASE("memory run: training on every device follows the CPU, captured steps too", "[product-key]") {
  const RunFolder folder;
  const data::DataSet data = data::DataSet::open(folder.data());
  const RunConfig config = resolved_config(
      parse_run_config(memory_config(), "test", {"training.batch=2", "training.block=12", "optimizer.table_clip=1"}),
      data);
  Runtime host({}, 1, config.training.seed);
  TrainingSession reference(config, data, host, DType::f32);
  std::vector<double> expected;
  for (int i = 0; i < 8; ++i) expected.push_back(reference.step().nll);
  for (const Device device : other_devices()) {
    Runtime runtime(device, 0, config.training.seed);
    TrainingSession session(config, data, runtime, DType::f32);
    for (const double nll : expected) CHECK(session.step().nll == Approx(nll).epsilon(5e-5));
    CHECK(session.trainer.replayed() > 0);
  }
}

TEST_CASE("memory run: a step that is taken back leaves running statistics as they were", "[product-key]") {
  const RunFolder folder;
  const data::DataSet data = data::DataSet::open(folder.data());
  const RunConfig config = resolved_config(parse_run_config(memory_config(), "test"), data);
  Runtime runtime({}, 1, config.training.seed);
  TrainingSession session(config, data, runtime, DType::f64);
  session.step();
  const auto mean = [&] {
    const Tensor& buffer = session.store.find("layers.0.memory.query.norm.running_mean")->value();
    return std::vector<double>(buffer.data<double>(), buffer.data<double>() + buffer.count());
  };
  const std::vector<double> before = mean();
  data::Block block;
  session.reader->next(block);
  session.trainer.accumulate(block);
  CHECK(mean() != before);
  session.trainer.undo();
  CHECK(mean() == before);
}

TEST_CASE("memory run: a table that does not fit says how many bytes it needs", "[product-key]") {
  const RunFolder folder;
  const data::DataSet data = data::DataSet::open(folder.data());
  const RunConfig config =
      resolved_config(parse_run_config(memory_config(), "test", {"product_key.subkeys=100000000"}), data);
  Runtime runtime({}, 1, config.training.seed);
  CHECK_THROWS_AS(TrainingSession(config, data, runtime, DType::f32), OutOfMemory);
}

}  // namespace
}  // namespace engram::harness::product_key_memory_run_test
