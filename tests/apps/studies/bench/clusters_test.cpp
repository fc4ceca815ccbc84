/// Vocabularies in clusters through everything that trains and uses a model: pieces of a batch, resuming, evaluation,
/// generation, devices that repeat steps, costs and bench.

#include <cmath>
#include <map>
#include <sstream>

#include "apps/run/cost/all_attention_cost.hpp"
#include "apps/run/cost/cluster_shares.hpp"
#include "apps/run/cost/parameter_groups.hpp"
#include "apps/run/evaluation/evaluator.hpp"
#include "apps/run/generation/token_stream.hpp"
#include "apps/run/model/trained_model.hpp"
#include "apps/run/training/trainer.hpp"
#include "apps/studies/bench/inference_bench.hpp"
#include "apps/studies/bench/softmax_report.hpp"
#include "apps/studies/bench/training_bench.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "nn/visitor.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/apps/run/run_metrics.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/op_run.hpp"

namespace engram::harness::clusters_test {
namespace {

struct WordFolder : RunFolder {
  WordFolder() : RunFolder(6000, 1, data::TokenKind::word) {}
};

/// The text's vocabulary has 12 words; the model's width is 16.
constexpr const char* kClusters = "model.cutoffs=5,11";

TrainingRunOptions clusters_run(const RunFolder& folder, const std::string& out,
                                const std::vector<std::string>& more = {}) {
  TrainingRunOptions options = run_options(folder, out);
  options.overrides = {kClusters, "schedule.rate=0.02"};
  options.overrides.insert(options.overrides.end(), more.begin(), more.end());
  return options;
}

AllAttentionOptions word_model(std::vector<std::int64_t> cutoffs) {
  AllAttentionOptions model;
  model.vocabulary = 267'735;
  model.layers = 36;
  model.width = 512;
  model.heads = 8;
  model.slots = 2048;
  model.max_span = 2048;
  model.cutoffs = std::move(cutoffs);
  return model;
}

ParameterCount count_of(const AllAttentionOptions& options) {
  AllAttentionModel model(options);
  return count_parameters(model);
}

}  // namespace

TEST_CASE("T12: word models have the published numbers of parameters, by role") {
  const AllAttentionOptions released = word_model({20'000, 40'000, 200'000});
  const ParameterCount count = count_of(released);
  CHECK(count.total == 132'493'746);
  CHECK(count.of(ParameterRole::embeddings) == 18'461'880);
  CHECK(count.of(ParameterRole::projections) == 512 * (512 + 128 + 32 + 8));
  CHECK(count.of(ParameterRole::cluster_head) == 3 * 513);
  CHECK(count.of(ParameterRole::output_biases) == 267'735);
  CHECK(count.of(ParameterRole::output) == 0);
  CHECK(count_of(word_model({20'000, 60'000})).total == 136'034'777);
  AllAttentionOptions untied = released;
  untied.tie_projections = false;
  CHECK(count_of(untied).total == 132'841'906);
  untied.tie_tables = false;
  CHECK(count_of(untied).total == 132'841'906 + 18'461'880);
  CHECK(count_of(untied).of(ParameterRole::output) == 18'461'880);
  AllAttentionOptions baseline = released;
  baseline.memory_mode = MemoryMode::transformer;
  baseline.slots = 0;
  baseline.layers = 22;
  baseline.inner = 4096;
  CHECK(count_of(baseline).total == 134'700'354);
  baseline.layers = 36;
  baseline.inner = 2048;
  CHECK(count_of(baseline).total == 132'622'770);
}

TEST_CASE("costs of a vocabulary in clusters by hand, and shares counted and assumed") {
  AllAttentionOptions model;
  model.vocabulary = 100;
  model.layers = 1;
  model.width = 32;
  model.heads = 2;
  model.slots = 3;
  model.max_span = 6;
  model.cutoffs = {20, 60};  // 20, 40 and 40 words of widths 32, 8 and 2
  const std::vector<double> shares{0.5, 0.25, 0.25};
  CHECK(output_flops(model, shares) ==
        2 * 32 * 32 + 2 * 32 * 22 + 0.25 * (2 * 32 * 8 + 2 * 8 * 40) + 0.25 * (2 * 32 * 2 + 2 * 2 * 40));
  CHECK(input_flops(model, shares) == 2 * 32 * (0.5 * 32 + 0.25 * 8 + 0.25 * 2));
  CHECK(output_exponentials(model, shares) == 22 + 0.25 * 40 + 0.25 * 40);
  AllAttentionOptions plain = model;
  plain.cutoffs.clear();
  CHECK(output_flops(plain) == 2 * 32 * 100);
  CHECK(input_flops(plain) == 0);
  const CostSetting setting{6, 2, 1, shares};
  CHECK(training_flops(model, setting).products - training_flops(plain, setting).products ==
        Approx(3 * (output_flops(model, shares) + input_flops(model, shares) - output_flops(plain))));
  CHECK(evaluation_flops(model, 6, shares) - evaluation_flops(plain, 6) ==
        Approx(output_flops(model, shares) + input_flops(model, shares) - output_flops(plain)));

  const std::vector<std::int32_t> tokens{0, 19, 20, 59, 60, 99, 3, 5};
  CHECK(counted_shares(model.cutoffs, data::TokenView(tokens)) == std::vector<double>{0.5, 0.25, 0.25});
  const std::vector<double> assumed = assumed_shares(model.cutoffs, 100);
  CHECK(assumed[0] + assumed[1] + assumed[2] == Approx(1));
  const std::vector<std::int32_t> drawn = ranked_tokens(40'000, 100, 1);
  const std::vector<double> of_drawn = counted_shares(model.cutoffs, data::TokenView(drawn));
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(std::abs(of_drawn[i] - assumed[i]) < 4 * std::sqrt(assumed[i] * (1 - assumed[i]) / 40'000));
  CHECK(ranked_tokens(100, 100, 1) == std::vector<std::int32_t>(drawn.begin(), drawn.begin() + 100));
  CHECK(ranked_tokens(100, 100, 2) != ranked_tokens(100, 100, 1));
}

namespace {

RunConfig small(std::int64_t split) {
  RunConfig config;
  config.model.all_attention.vocabulary = 30;
  config.model.all_attention.layers = 2;
  config.model.all_attention.width = 16;
  config.model.all_attention.heads = 2;
  config.model.all_attention.slots = 3;
  config.model.all_attention.max_span = 20;
  config.model.all_attention.ramp = 4;
  config.model.all_attention.span_init = 0.4;
  config.model.all_attention.cutoffs = {9, 19};
  config.schedule.steps = 100;
  config.training.batch = 4;
  config.training.block = 6;
  config.training.split = split;
  config.training.span_loss = 0.001;
  return config;
}

data::Block random_block(std::uint64_t seed) {
  reference::RandomArrays random(seed);
  data::Block block{.rows = 4, .length = 6, .inputs = {}, .targets = {}, .scored = {}, .scored_count = 24};
  for (int i = 0; i < 24; ++i) {
    block.inputs.push_back(static_cast<std::int32_t>(random.below(30)));
    // The first row has no target in the last cluster.
    block.targets.push_back(static_cast<std::int32_t>(random.below(i < 6 ? 19 : 30)));
    block.scored.push_back(1);
  }
  block.zero_caches = seed == 1;
  return block;
}

struct TrainerBench {
  RunConfig config;
  Runtime runtime;
  ParameterStore store;
  AllAttentionModel model;
  std::unique_ptr<Trainer> trainer;

  explicit TrainerBench(const RunConfig& with, const Device& device = {}, DType dtype = DType::f64)
      : config(with), runtime(device, 1, 5), model(config.model.all_attention) {
    collect(model, store);
    store.place(runtime.backend(), dtype, 3);
    model.refresh(runtime.backend());
    trainer = std::make_unique<Trainer>(config, model, store, runtime);
  }
  std::map<std::string, reference::Array64> gradients() {
    std::map<std::string, reference::Array64> all;
    for (const auto& [name, parameter] : store.parameters())
      all[name] = to_host(runtime.backend(), parameter->gradient());
    return all;
  }
};

}  // namespace

TEST_CASE("T17: a batch of words in 1, 2 or 4 pieces has the same loss and gradients") {
  TrainerBench whole(small(1));
  const double first = whole.trainer->accumulate(random_block(1)).nll;
  const StepLosses second = whole.trainer->accumulate(random_block(2));
  const auto expected = whole.gradients();
  for (const std::int64_t split : {2, 4}) {
    TrainerBench pieces(small(split));
    CHECK(pieces.trainer->accumulate(random_block(1)).nll == Approx(first).epsilon(1e-13));
    const StepLosses losses = pieces.trainer->accumulate(random_block(2));
    CHECK(losses.nll == Approx(second.nll).epsilon(1e-13));
    CHECK(losses.span_loss == Approx(second.span_loss).epsilon(1e-13));
    for (const auto& [name, gradient] : pieces.gradients()) {
      CAPTURE(split, name);
      CHECK(reference::norm(expected.at(name)) > 0);
      CHECK(reference::distance_between(gradient, expected.at(name)) < 1e-12 * reference::norm(expected.at(name)));
    }
  }
}

TEST_CASE("every device has the CPU's losses and gradients of words, with the padding of its own") {
  TrainerBench cpu(small(2));
  const double first = cpu.trainer->accumulate(random_block(1)).nll;
  const double second = cpu.trainer->accumulate(random_block(2)).nll;
  const auto expected = cpu.gradients();
  for (const auto& backend : available_backends()) {
    if (backend->device().kind == DeviceKind::cpu) continue;
    CAPTURE(text(backend->device()));
    TrainerBench other(small(2), backend->device());
    CHECK(other.trainer->accumulate(random_block(1)).nll == Approx(first).epsilon(1e-12));
    CHECK(other.trainer->accumulate(random_block(2)).nll == Approx(second).epsilon(1e-12));
    for (const auto& [name, gradient] : other.gradients()) {
      CAPTURE(name);
      CHECK(reference::distance_between(gradient, expected.at(name)) < 1e-11 * reference::norm(expected.at(name)));
    }
  }
}

TEST_CASE("runs over words: every device has the CPU's losses, replayed steps as well, and bf16 is near", "[gpu]") {
  const WordFolder folder;
  const std::vector<std::string> shorter = {
      "schedule.steps=20",          "schedule.warmup=1", "training.report_every=1", "training.validate_every=5",
      "training.validate_blocks=1", "training.batch=2",  "training.block=20",       "model.span_init=0.3"};
  TrainingRunOptions options = clusters_run(folder, "cpu", shorter);
  run_training(options, never());
  for (const auto& backend : available_backends()) {
    const Device device = backend->device();
    if (device.kind == DeviceKind::cpu) continue;
    CAPTURE(text(device));
    options.out = folder / std::string(name_of(device.kind));
    options.device = device;
    run_training(options, never());
    const std::vector<double> wanted = metrics(folder / "cpu", "nll"), got = metrics(options.out, "nll");
    REQUIRE(got.size() == wanted.size());
    REQUIRE(wanted.size() >= 14);
    for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(got[i] == Approx(wanted[i]).epsilon(1e-4));
    CHECK(metrics(options.out, "replayed_steps").at(0) >= 2);

    TrainingRunOptions rounded = options;
    rounded.out = folder / (std::string(name_of(device.kind)) + "_bf16");
    rounded.overrides.emplace_back("training.activations=bf16");
    rounded.overrides.emplace_back("schedule.steps=4");
    run_training(rounded, never());
    const std::vector<double> bf16 = metrics(rounded.out, "nll");
    for (std::size_t i = 0; i < 4; ++i) CHECK(bf16[i] == Approx(wanted[i]).epsilon(0.03));
    CHECK(bf16[0] != wanted[0]);
  }
}

TEST_CASE("a run over words learns, is resumed bit for bit, and keeps its cut-offs") {
  const WordFolder folder;
  const TrainingRunOptions whole = clusters_run(folder, "whole");
  run_training(whole, never());
  const std::vector<double> losses = metrics(whole.out, "nll");
  CHECK(losses.back() < losses.front() - 1);
  TrainingRunOptions parts = clusters_run(folder, "parts");
  CHECK_THROWS_AS(run_training(parts, after_steps(7)), Error);
  parts.resume = true;
  parts.overrides[0] = "model.cutoffs=5,10";
  CHECK_THAT(message_of<UsageError>([&] { run_training(parts, never()); }),
             ContainsSubstring("model.cutoffs: [5, 11] -> [5, 10]"));
  parts.overrides.clear();
  parts.config.clear();
  run_training(parts, never());
  CHECK(newest_checkpoint(parts) == newest_checkpoint(whole));
}

TEST_CASE("cut-offs that do not fit the data are refused with ones that do") {
  const WordFolder folder;
  TrainingRunOptions options = run_options(folder, "run");
  options.overrides = {"model.cutoffs=20000,40000,200000", "model.width=64"};
  const std::int64_t size = data::DataSet::open(folder.data()).vocabulary().size();
  CHECK_THAT(
      message_of<UsageError>([&] { run_training(options, never()); }),
      ContainsSubstring(text("below the vocabulary of ", size, ", got 20000")) && ContainsSubstring("] would fit"));
  CHECK_FALSE(std::filesystem::exists(options.out));

  const RunFolder characters;
  options.data = characters.data();
  CHECK_THAT(message_of<UsageError>([&] { run_training(options, never()); }),
             ContainsSubstring("must hold words, got characters") && ContainsSubstring("--kind word"));
}

TEST_CASE("evaluation and generation of words do not depend on blocks and caches") {
  const WordFolder folder;
  const TrainingRunOptions options = clusters_run(folder, "run", {"schedule.steps=12", "model.span_init=0.3"});
  run_training(options, never());
  Runtime runtime({}, 1);
  TrainedModel trained(options.out, CheckpointKind::newest, runtime, DType::f64);
  const data::DataSet data = data::DataSet::open(folder.data());
  const data::TokenView test = data.split("test");
  std::map<std::int64_t, double> losses;
  const auto measure = [&](int block, bool ring, const TokenLoss& found) {
    data::ExactEvaluation plan(test, block);
    ModelPast past = ring ? trained.model().frozen_past(runtime.backend(), runtime.memory(), 1, DType::f64, block)
                          : trained.model().training_past(runtime.backend(), runtime.memory(), 1, DType::f64);
    return evaluate({trained.model(), runtime, DType::f64}, plan, past, {.found = found});
  };
  const Evaluation expected = measure(40, true, [&](std::int64_t token, double nll) { losses[token] = nll; });
  CHECK(expected.scored == test.size() - 1);
  for (const int block : {1, 7, 64, 1000})
    for (const bool ring : {true, false})
      CHECK(measure(block, ring, {}).nll_sum == Approx(expected.nll_sum).epsilon(1e-12));

  // A stream's probabilities are those whose logarithms evaluation sums.
  TokenStream stream({trained.model(), runtime, DType::f64});
  for (std::int64_t token = 1; token < 80; ++token) {
    const std::int32_t before = test[token - 1];
    const std::span<const double> all = stream.append(std::span(&before, 1));
    double sum = 0;
    for (const double value : all) sum += std::exp(value);
    CHECK(sum == Approx(1).epsilon(1e-12));
    CHECK(-all[static_cast<std::size_t>(test[token])] == Approx(losses[token]).epsilon(1e-10));
  }
}

TEST_CASE("whole models with a vocabulary in clusters can be timed") {
  BenchCase bench{"words", small(2), {}};
  MachineLimits limits;
  limits.flops_per_second = limits.bytes_per_second = limits.exponentials_per_second = 1e9;
  {
    Runtime runtime({}, 1);
    const BenchResult result = bench_training(bench, limits, runtime, 2);
    CHECK(result.kernels.totals().contains("cross_entropy"));
    CHECK(result.cost.output_exponentials == output_exponentials(bench.config.model.all_attention));
    CHECK(result.cost.output_exponentials < 30 + 2);
  }
  Runtime runtime({}, 1);
  CHECK(bench_inference(bench, limits, runtime, 2).generation.at(1).token_seconds > 0);
}

TEST_CASE("the bench of both ends counts tokens, shares and products", "[night]") {
  Runtime runtime({}, 1);
  SoftmaxBench bench;
  bench.model.vocabulary = 300;
  bench.model.width = 32;
  bench.model.cutoffs = {40, 100};
  bench.tokens = 64;
  bench.full_tokens = 16;
  const SoftmaxResult result = bench_softmax(bench, runtime, 3);
  CHECK(result.adaptive.seconds.size() == 3);
  CHECK(result.adaptive.times_floor.size() == 3);
  CHECK(result.adaptive.times_floor.front() > 0);
  CHECK(result.adaptive.tokens == 64);
  CHECK(result.full.tokens == 16);
  REQUIRE(result.adaptive.cluster_shares.size() == 3);
  const auto& shares = result.adaptive.cluster_shares;
  CHECK(shares[0] + shares[1] + shares[2] == Approx(1));
  CHECK(result.adaptive.flops == 3 * (input_flops(bench.model, shares) + output_flops(bench.model, shares)));
  CHECK(result.full.flops == 6.0 * 32 * 300);
  MachineLimits limits;
  limits.flops_per_second = 1e9;
  CHECK(result.full.floor_seconds(limits) == Approx(6.0 * 32 * 300 * 16 / 1e9));
  CHECK_THAT(table_of(bench, result, limits), ContainsSubstring("cut-offs 40, 100") &&
                                                  ContainsSubstring("full softmax") && ContainsSubstring("rank^-1.15"));
  CHECK(json_of(bench, result, limits)["adaptive"]["tokens_per_step"] == 64);
}

}  // namespace engram::harness::clusters_test
