/// What the first step would refuse or spoil, or no memory could hold, is refused before a run has a folder.

#include <sys/resource.h>

#include <algorithm>

#include "apps/run/config/run_config_file.hpp"
#include "apps/run/model/trained_model.hpp"
#include "apps/run/training/machine_memory.hpp"
#include "apps/run/training/rank_setting.hpp"
#include "core/error.hpp"
#include "nn/visitor.hpp"
#include "tests/apps/run/product_key_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::refused_values_test {
namespace {

TEST_CASE("refused values: dropout that drops everything, and an epsilon that f32 does not hold") {
  const RunFolder folder;
  TrainingRunOptions options = run_options(folder, "run");
  for (const char* override : {"model.dropout=0.999995", "model.embedding_dropout=0.999995"}) {
    options.overrides = {override};
    CHECK_THAT(message_of<UsageError>([&] { run_training(options, never()); }),
               ContainsSubstring("dropout must be in [0, 1 - 2^-17), got 0.999995"));
  }
  options.overrides = {"optimizer.kind=adam", "optimizer.epsilon=1e-46"};
  CHECK_THAT(message_of<UsageError>([&] { run_training(options, never()); }),
             ContainsSubstring("epsilon must be from 1.2e-38"));
  CHECK_FALSE(std::filesystem::exists(options.out));
}

TEST_CASE("refused values: tables of bf16 with --dtype f64, in training and afterwards", "[product-key]") {
  const RunFolder folder;
  TrainingRunOptions options = memory_run(folder, "run", {"product_key.value_dtype=bf16", "schedule.steps=1"});
  options.dtype = DType::f64;
  CHECK_THAT(message_of<UsageError>([&] { run_training(options, never()); }),
             ContainsSubstring("training: --dtype must be f32 with product_key.value_dtype = bf16, got f64"));
  CHECK_FALSE(std::filesystem::exists(options.out));
  options.dtype.reset();
  run_training(options, never());
  Runtime runtime({}, 1);
  CHECK_THAT(message_of<UsageError>([&] { TrainedModel(options.out, CheckpointKind::newest, runtime, DType::f64); }),
             ContainsSubstring("--dtype must be f32 with product_key.value_dtype = bf16, got f64"));
  CHECK_NOTHROW(TrainedModel(options.out, CheckpointKind::newest, runtime));
}

TEST_CASE("refused values: a model that the machine's memory and swap cannot hold") {
  const RunFolder folder;
  TrainingRunOptions options = run_options(folder, "run");
  // Two layers of about 2^44 numbers.
  options.overrides = {"model.memory_mode=transformer", "model.slots=0", "model.width=1048576", "model.inner=8388608"};
  if (machine_memory_bytes() > 0) {
    CHECK_THAT(message_of<OutOfMemory>([&] { run_training(options, never()); }),
               ContainsSubstring("the machine's memory and swap, ") &&
                   ContainsSubstring(" parameters with gradients") && ContainsSubstring("GiB"));
    CHECK_FALSE(std::filesystem::exists(options.out));
  }
  RunConfig config = load_run_config(options.config);
  config.model.set_vocabulary(15);
  CHECK_NOTHROW(require_machine_memory(config));
  CHECK_NOTHROW(require_machine_memory(config, 1, 1, 0));  // not known
  CHECK_THROWS_AS(require_machine_memory(config, 1, 1, 1000), OutOfMemory);
  // Two ranks of four on a machine with room for one.
  config.training.split = 4;
  const std::unique_ptr<LanguageModel> model = make_model(config.model);
  ParameterStore store;
  collect(*model, store);
  const std::int64_t room = largest_rank_memory(rank_setting(config), store, 4).total();
  CHECK_NOTHROW(require_machine_memory(config, 4, 1, room));
  CHECK_THAT(message_of<OutOfMemory>([&] { require_machine_memory(config, 4, 2, room); }),
             ContainsSubstring("of 2 of the 4 ranks"));
  CHECK_NOTHROW(require_machine_memory(config, 4, 2, 2 * room, room));
  CHECK_THAT(message_of<OutOfMemory>([&] { require_machine_memory(config, 4, 2, 2 * room, room - 1); }),
             ContainsSubstring("what a process may take (ulimit -v) beside what it has, ") &&
                 ContainsSubstring("of 1 of the 4 ranks"));
}

TEST_CASE("refused values: a limit of this process's addresses, less what it has, is known") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_AS, &before) == 0);
  const auto still = [&](rlim_t limit) {
    const rlimit changed{std::min(limit, before.rlim_max), before.rlim_max};
    ::setrlimit(RLIMIT_AS, &changed);
    const std::int64_t bytes = process_memory_bytes();
    ::setrlimit(RLIMIT_AS, &before);
    return bytes;
  };
  // Sanitizers take terabytes of addresses.
  constexpr rlim_t kMost = rlim_t{1} << 50;
  if (before.rlim_max < kMost) return;
  CHECK(still(kMost) > 0);
  CHECK(still(kMost) < static_cast<std::int64_t>(kMost));
  CHECK(still(1) == 1);
  if (before.rlim_max == RLIM_INFINITY) CHECK(still(RLIM_INFINITY) == 0);
}

TEST_CASE("refused values: a table that one machine cannot hold, but several that share its columns can") {
  const RunFolder folder;
  RunConfig config = load_run_config(put_file(folder / "memory.toml", R"([model]
family = "product_key"
layers = 2
width = 16
heads = 2
[product_key]
count = 1
subkeys = 128
heads = 2
selected = 4
query_width = 8
[optimizer]
kind = "adam"
[schedule]
rate = 0.01
steps = 4
[training]
batch = 4
block = 20
)"));
  config.model.set_vocabulary(15);
  // 16,384 rows of 16 numbers with two moments.
  constexpr std::int64_t kTable = 16'384 * 16 * 12;
  CHECK_THROWS_AS(require_machine_memory(config, 1, 1, kTable), OutOfMemory);
  CHECK_THROWS_AS(require_machine_memory(config, 2, 1, kTable / 2), OutOfMemory);
  CHECK_NOTHROW(require_machine_memory(config, 2, 1, kTable));
  CHECK_NOTHROW(require_machine_memory(config, 4, 1, kTable / 2));
}

}  // namespace
}  // namespace engram::harness::refused_values_test
