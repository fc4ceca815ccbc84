/// What is counted before a run against what the run takes: to the byte, kernel by kernel.

#include "apps/run/training/step_memory.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/run/config/run_config_file.hpp"
#include "apps/run/cost/cluster_shares.hpp"
#include "apps/run/training/first_step_memory.hpp"
#include "apps/run/training/session.hpp"
#include "apps/run/training/trainer.hpp"
#include "core/counting_backend.hpp"
#include "nn/visitor.hpp"
#include "tests/apps/run/other_devices.hpp"
#include "tests/apps/run/transfer/transfer_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::step_memory_test {
namespace {

struct MemoryVariant {
  const char* name;
  std::string config;
};

std::string with_training(const char* rest, const char* training) {
  return text(rest, "[schedule]\nrate = 0.01\nsteps = 10\n[training]\n", training);
}

constexpr const char* kSpans = R"([model]
vocabulary = 11
layers = 2
width = 32
heads = 2
slots = 5
max_span = 48
ramp = 8
span_init = 0.4
dropout = 0.1
[optimizer]
clip = 0.5
)";
constexpr const char* kMemories = R"([model]
family = "product_key"
vocabulary = 60
layers = 3
width = 32
heads = 2
position_rows = 24
[product_key]
layers = [1, 3]
subkeys = 6
heads = 2
selected = 3
query_width = 8
[optimizer]
kind = "adam"
clip = 5
table_mode = "deferred"
table_epsilon = 0
)";
constexpr const char* kClusters = R"([model]
family = "transformer_xl"
vocabulary = 40
layers = 2
width = 16
heads = 2
inner = 24
memory = 20
dropout = 0.1
cutoffs = [10, 20]
[optimizer]
kind = "sgd"
momentum = 0.9
)";
constexpr const char* kAuxiliary = R"([model]
family = "transformer_xl"
vocabulary = 30
layers = 3
width = 16
heads = 2
inner = 24
memory = 0
positions = "absolute_learned"
position_rows = 12
intermediate_losses = true
second_target = 0.5
[optimizer]
kind = "sgd"
)";
// Logits of 2 MB are more than it holds at a time.
constexpr const char* kRecurrent = R"([model]
family = "recurrent"
vocabulary = 9000
embedding_width = 16
width = 12
encoder = "lstm"
readout = "key_value_predict"
window = 3
logits_memory = 1
[optimizer]
kind = "adam"
)";

std::vector<MemoryVariant> variants() {
  return {{"spans", with_training(kSpans, "batch = 4\nblock = 12\nsplit = 2\n")},
          {"spans, rounded products", with_training(kSpans, "batch = 4\nblock = 12\nproducts = \"bf16\"\n")},
          {"tables", with_training(kMemories, "batch = 4\nblock = 12\nsplit = 2\n")},
          {"clusters", with_training(kClusters, "batch = 4\nblock = 12\n")},
          {"auxiliary losses", with_training(kAuxiliary, "batch = 4\nblock = 12\nsplit = 2\n")},
          {"a text's words before", with_training(kRecurrent, "batch = 5\nblock = 12\n")}};
}

/// Between kernels: what is in use before each, and the peak after it.
class ArenaTrace final : public KernelObserver {
 public:
  explicit ArenaTrace(Arena& arena) : arena_(&arena) {}
  void before(const char* kernel) override { calls.push_back(text(kernel, " ", arena_->bytes_in_use())); }
  void after(const char*) override { calls.back() += text(" ", arena_->peak_bytes()); }
  std::vector<std::string> calls;

 private:
  Arena* arena_;
};

struct Taken {
  std::vector<std::string> calls;
  std::size_t store = 0, besides = 0, peak = 0, slab = 0;
};

Taken taken_on(std::unique_ptr<Backend> backend, const RunConfig& config, int steps) {
  Runtime runtime(std::move(backend), 2, config.training.seed, nullptr);
  const std::unique_ptr<LanguageModel> model = make_model(config.model);
  ParameterStore store;
  collect(*model, store);
  store.place(runtime.backend(), DType::f32, 3);
  model->refresh(runtime.backend());
  Trainer trainer(config, *model, store, runtime);
  const std::vector<std::int32_t> words =
      ranked_tokens(config.training.batch * (config.training.block * (steps + 1) + 1), config.model.vocabulary(), 1);
  const std::unique_ptr<data::BlockReader> reader = make_reader(config, data::TokenView(words));
  ArenaTrace trace(runtime.arena());
  runtime.step().observe(&trace);
  data::Block block;
  for (int step = 0; step < steps; ++step) {
    reader->next(block);
    trainer.step(block);
  }
  runtime.step().observe(nullptr);
  return {std::move(trace.calls), store.bytes_in_use(), runtime.bytes_in_use(), runtime.arena().peak_bytes(),
          runtime.arena().slab_bytes()};
}

/// What the device takes in so many steps.
Taken check_alike(const RunConfig& config, Device device, int steps) {
  Taken real = taken_on(open_backend(device), config, steps);
  const Taken counted = taken_on(std::make_unique<CountingBackend>(open_backend(device)), config, steps);
  REQUIRE(counted.calls.size() == real.calls.size());
  for (std::size_t i = 0; i < real.calls.size(); ++i) {
    CAPTURE(i);
    REQUIRE(counted.calls[i] == real.calls[i]);
  }
  CHECK(counted.store == real.store);
  CHECK(counted.besides == real.besides);
  CHECK(counted.peak == real.peak);
  CHECK(counted.slab == real.slab);
  return real;
}

void check_count(const RunConfig& config, const Taken& real) {
  const StepMemory memory = count_step_memory(config, data::TokenView(), {.threads = 2});
  CHECK(memory.kept.in_store() == static_cast<std::int64_t>(real.store));
  CHECK(memory.kept.kept_buffers + memory.kept.sums + memory.caches + memory.blocks ==
        static_cast<std::int64_t>(real.besides));
  // Other words: of a vocabulary in clusters each has other sizes from step to step.
  CHECK(std::abs(static_cast<double>(memory.peak) / static_cast<double>(real.peak) - 1) < 0.05);
  CHECK(memory.activations > 0);
  CHECK(memory.activations <= memory.peak);
  CHECK(memory.workspace < memory.peak);
}

TEST_CASE("step memory: what is counted is what training takes, to the byte", "[memory]") {
  for (const MemoryVariant& variant : variants()) {
    CAPTURE(variant.name);
    RunConfig config = parse_run_config(variant.config, "test.toml");
    constexpr int kUntilCachesAreFull = 6;
    check_count(config, check_alike(config, {}, kUntilCachesAreFull));
    if (!has_simulated_device()) continue;
    config.training.batch = 2;
    config.model.set_vocabulary(std::min<std::int64_t>(60, config.model.vocabulary()));
    check_alike(config, {.kind = DeviceKind::simulated}, 2);
  }
}

TEST_CASE("step memory: a run that has it beforehand takes no more, with the losses that it has without",
          "[memory][night]") {
  const RunFolder folder;
  const char* const remembering = R"([model]
family = "transformer_xl"
layers = 2
heads = 2
inner = 96
memory = 90
[optimizer]
kind = "adam"
)";
  const std::vector<std::string> larger{"training.batch=32", "model.width=64"};
  for (const std::string& config : {small_config(), with_training(remembering, "block = 40\nsplit = 2\n")}) {
    SmallModel with(config, folder.data(), larger), without(config, folder.data(), larger);
    take_memory_of_steps(with.session);
    Arena& arena = with.session.runtime.arena();
    CHECK(arena.slab_count() == 1);
    const std::int64_t generation = arena.generation();
    const std::size_t bytes = arena.slab_bytes();
    for (int step = 0; step < 8; ++step) CHECK(with.session.step().nll == without.session.step().nll);
    CHECK(arena.generation() == generation);
    CHECK(arena.slab_bytes() == bytes);
    // Steps come to about as much by themselves, but begin with less.
    CHECK(without.session.runtime.arena().generation() > generation);
    CHECK(static_cast<double>(bytes) < 1.1 * static_cast<double>(without.session.runtime.arena().slab_bytes()));
  }
  // Spans that were learned are not those that are counted.
  SmallModel trained(small_config(), folder.data());
  trained.session.step();
  const std::int64_t generation = trained.session.runtime.arena().generation();
  take_memory_of_steps(trained.session);
  CHECK(trained.session.runtime.arena().generation() == generation);
}

TEST_CASE("step memory: bf16 activations", "[memory]") {
  if (!has_simulated_device()) return;
  RunConfig config = parse_run_config(variants().front().config, "test.toml");
  config.training.activations = ActivationPrecision::bf16;
  config.training.batch = 2;
  check_alike(config, {.kind = DeviceKind::simulated}, 2);
}

TEST_CASE("step memory: a model of hundreds of gigabytes is counted at once", "[memory]") {
  const RunConfig config = parse_run_config(with_training(R"([model]
vocabulary = 205
layers = 96
width = 8192
heads = 64
slots = 2048
max_span = 8192
)",
                                                          "batch = 2\nblock = 2048\nsplit = 2\n"),
                                            "test.toml");
  const StepMemory memory = count_step_memory(config, data::TokenView(), {});
  CHECK(memory.kept.values > std::int64_t{100} << 30);
  CHECK(memory.caches > std::int64_t{2} * 96 * 8192 * 4);
  CHECK(memory.total() > memory.kept.values * 3);
}

TEST_CASE("step memory: ranks share the batch", "[memory]") {
  RunConfig config = parse_run_config(variants().front().config, "test.toml");
  config.training.split = 4;
  const StepMemory alone = count_step_memory(config, data::TokenView(), {.threads = 1});
  const StepMemory half = count_step_memory(config, data::TokenView(), {.threads = 1, .ranks = 2});
  CHECK(half.caches * 2 == alone.caches);
  CHECK(half.kept.exchange > 0);
  CHECK(half.peak == alone.peak);  // of a piece
}

}  // namespace
}  // namespace engram::harness::step_memory_test
