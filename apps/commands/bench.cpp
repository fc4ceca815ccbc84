#include "apps/commands/commands.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/commands/bench_product_keys.hpp"
#include "apps/commands/bench_vanilla.hpp"
#include "apps/commands/output.hpp"
#include "apps/commands/shared_options.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "apps/studies/bench/bench_report.hpp"
#include "apps/studies/bench/inference_bench.hpp"
#include "apps/studies/bench/machine_limits.hpp"
#include "apps/studies/bench/softmax_report.hpp"
#include "apps/studies/bench/training_bench.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "core/log.hpp"

namespace engram {
namespace {

struct BenchArguments {
  std::vector<std::string> configs;
  std::vector<std::string> overrides;
  std::string filter;
  std::int64_t steps = 10;
  std::int64_t vocabulary = 0;
  std::vector<std::int64_t> spans;  ///< positions
  std::string device = "cpu", dtype;
  int threads = 0;
  std::int64_t product_size = 4000;
  bool compare_spans = false;
  bool inference = false;
  bool softmax = false;
  std::int64_t tokens = 0;
  bool json = false;
  BenchVanillaArguments vanilla;
  BenchProductKeysArguments memory;
};

/// One long head and short others, the shape that spans take when they are learned.
std::vector<std::int64_t> ragged_spans(const AllAttentionOptions& model) {
  std::vector<std::int64_t> spans(static_cast<std::size_t>(model.heads), model.ramp);
  spans.front() = model.max_span;
  return spans;
}

std::vector<BenchCase> cases_of(const BenchArguments& arguments) {
  std::vector<std::string> files = arguments.configs;
  const std::filesystem::path folder = ENGRAM_CONFIG_DIR;
  if (files.empty() && arguments.compare_spans) files = {(folder / "bench/bench-b.toml").string()};
  if (files.empty()) {
    for (const char* name : {"bench-a.toml", "bench-b.toml", "bench-c.toml"})
      files.push_back((folder / "bench" / name).string());
    // Spans, and most keys that one would set, are of the other family.
    if (arguments.spans.empty() && arguments.overrides.empty())
      files.push_back((folder / "bench/bench-xl.toml").string());
  }
  std::vector<std::string> overrides = arguments.overrides;
  if (!arguments.dtype.empty()) overrides.push_back("training.products=" + arguments.dtype);
  std::vector<BenchCase> cases;
  for (const std::string& file : files) {
    BenchCase one{std::filesystem::path(file).stem().string(), {}, arguments.spans};
    if (one.name.find(arguments.filter) == std::string::npos) continue;
    one.config = load_run_config(file, overrides);
    if (arguments.compare_spans) require_all_attention(one.config.model, "bench --compare-spans");
    if (!arguments.spans.empty()) require_all_attention(one.config.model, "bench --spans");
    if (arguments.vocabulary != 0) one.config.model.set_vocabulary(arguments.vocabulary);
    // Before the machine is measured, which takes seconds.
    if (one.config.model.vocabulary() < 1)
      throw UsageError(text("bench: '", one.name, "' takes its vocabulary from the data\n  --vocab N gives one"));
    if (arguments.spans.empty() && one.name == "bench-b") one.spans = ragged_spans(one.config.model.all_attention);
    cases.push_back(std::move(one));
  }
  if (cases.empty()) throw UsageError(text("bench: no config has '", arguments.filter, "' in its name"));
  return cases;
}

/// The model without its persistent slots: what remains of attention is what depends on spans.
BenchCase context_only(BenchCase bench) {
  if (bench.config.model.all_attention.memory_mode == MemoryMode::all)
    bench.config.model.all_attention.memory_mode = MemoryMode::none;
  bench.config.model.all_attention.slots = 0;
  bench.name += " without slots";
  return bench;
}

/// The released word model; the softmax over all of its vocabulary has fewer tokens, because every one of them has
/// 267,735 logits.
SoftmaxBench softmax_case(const BenchArguments& arguments) {
  SoftmaxBench bench;
  bench.model.vocabulary = arguments.vocabulary != 0 ? arguments.vocabulary : 267'735;
  bench.model.width = 512;
  constexpr std::array<std::int64_t, 3> kCutoffs{20'000, 40'000, 200'000};
  bench.model.cutoffs = VocabularyClusters::fitting(kCutoffs, bench.model.vocabulary, bench.model.width);
  if (bench.model.cutoffs.empty())
    throw UsageError(text("bench: --softmax needs a vocabulary for several clusters, got ", bench.model.vocabulary));
  bench.tokens = arguments.tokens != 0 ? arguments.tokens : 4096;
  bench.full_tokens = std::min<std::int64_t>(bench.tokens, 512);
  return bench;
}

void run_softmax(const BenchArguments& arguments) {
  const SoftmaxBench bench = softmax_case(arguments);
  const Device device = parse_device(arguments.device);
  const ProductPrecision products = arguments.dtype == "bf16" ? ProductPrecision::bf16 : ProductPrecision::f32;
  WorkProgress progress("measuring the machine");
  const MachineLimits machine = measure_limits(Runtime(device, arguments.threads).backend(), arguments.product_size);
  if (!arguments.json) print(table_of(machine));
  progress.begin("timing input and output of a word model");
  Runtime runtime(device, arguments.threads);
  runtime.step().set_products(products);
  const SoftmaxResult result = bench_softmax(bench, runtime, arguments.steps);
  progress.end();
  const MachineLimits limits = machine.with(products);
  if (arguments.json)
    print_json({{"machine", json_of(machine)}, {"device", text(device)}, {"softmax", json_of(bench, result, limits)}});
  else
    print(table_of(bench, result, limits));
}

void run_bench(const BenchArguments& arguments) {
  if (arguments.tokens != 0 && !arguments.softmax && !arguments.memory.wanted)
    throw UsageError(text("bench: --tokens is of --softmax or --memory, got ", arguments.tokens, " and neither"));
  if (arguments.vanilla.wanted)
    return bench_vanilla(arguments.vanilla, {arguments.configs, arguments.overrides, arguments.vocabulary,
                                             arguments.steps, arguments.device, arguments.threads, arguments.json});
  if (arguments.memory.wanted)
    return bench_product_keys(arguments.memory, {arguments.tokens, arguments.steps, arguments.device, arguments.threads,
                                                 arguments.product_size, arguments.json});
  if (arguments.softmax) return run_softmax(arguments);
  const std::vector<BenchCase> cases = cases_of(arguments);
  const Device device = parse_device(arguments.device);
  WorkProgress progress("measuring the machine");
  const MachineLimits machine = measure_limits(Runtime(device, arguments.threads).backend(), arguments.product_size);
  nlohmann::json object{{"machine", json_of(machine)}, {"device", text(device)}};
  if (!arguments.json) print(table_of(machine));

  const auto begin = [&](const std::string& name) {
    if (arguments.json) log(LogLevel::info, text("bench ", name, " ..."));
    progress.begin("timing " + name);
  };
  const auto measure = [&](const BenchCase& bench) {
    const MachineLimits limits = machine.with(bench.config.training.products);
    begin(bench.name);
    Runtime runtime(device, arguments.threads, bench.config.training.seed);
    BenchResult result = bench_training(bench, limits, runtime, arguments.steps);
    object["configs"].push_back(json_of(bench, result, limits));
    if (!arguments.json) print(table_of(bench, result, limits));
    return result;
  };
  for (const BenchCase& bench : cases) {
    if (arguments.inference) {
      begin(bench.name);
      Runtime runtime(device, arguments.threads, bench.config.training.seed);
      const InferenceResult result = bench_inference(bench, machine, runtime, arguments.steps);
      object["inference"].push_back(json_of(bench, result));
      if (!arguments.json) print(table_of(bench, result));
      continue;
    }
    if (!arguments.compare_spans) {
      measure(bench);
      continue;
    }
    BenchCase full = bench, ragged = bench;
    full.name += " with full spans";
    full.spans = {bench.config.model.all_attention.max_span};
    ragged.name += " with ragged spans";
    if (ragged.spans.empty()) ragged.spans = ragged_spans(bench.config.model.all_attention);
    const BenchResult full_result = measure(full), ragged_result = measure(ragged);
    const BenchResult full_context = measure(context_only(full)), ragged_context = measure(context_only(ragged));
    const SpanComparison comparison = compare_spans({full_result, ragged_result, full_context, ragged_context});
    object["comparisons"][bench.name] = json_of(comparison);
    if (!arguments.json) print(table_of(comparison));
  }
  progress.end();
  if (arguments.json) print_json(object);
}

}  // namespace

Command* add_bench_command(Command& program) {
  Command* command = program.add_subcommand("bench", "time training and evaluation against this machine's limits");
  const auto arguments = std::make_shared<BenchArguments>();
  command->add_option("--config", arguments->configs,
                      "TOML files [bench-a, bench-b, bench-c and bench-xl of apps/configs/bench]");
  command->add_key_settings(arguments->overrides, "override keys of the configs: section.key=value");
  command->add_option("--filter", arguments->filter, "only configs with this text in their names");
  command
      ->add_option("--steps", arguments->steps,
                   "timed steps of each config, with --memory passes; with --inference blocks, and 16 tokens for each")
      ->positive()
      ->capture_default_str();
  command->add_option("--vocab", arguments->vocabulary, "symbols of the vocabulary, instead of the config's")
      ->positive();
  command
      ->add_option("--spans", arguments->spans,
                   "positions that the heads see, one number or one per head: 2048,32,32,32 [the longest]")
      ->delimiter(',');
  add_device_option(*command, arguments->device);
  command
      ->add_option("--dtype", arguments->dtype,
                   "operands of training's products: f32 or bf16 [the config's training.products]")
      ->one_of({"f32", "bf16"});
  add_threads_option(*command, arguments->threads);
  command->add_option("--product-size", arguments->product_size, "rows, columns and inner size of the largest product")
      ->capture_default_str();
  Option* compare = command->add_flag("--compare-spans", arguments->compare_spans,
                                      "every head at the longest span against spans that differ [of bench-b]");
  Option* inference =
      command
          ->add_flag("--inference", arguments->inference,
                     "frozen weights instead of training: evaluation through key and value rings, and generation")
          ->excludes(compare);
  Option* softmax =
      command
          ->add_flag("--softmax", arguments->softmax,
                     "input and output of a word model alone: V=267735, d=512, cut-offs 20000, 40000 and 200000 "
                     "(in proportion for another --vocab), "
                     "against the floor of its products and beside a softmax over all words [no config]")
          ->excludes(compare)
          ->excludes(inference);
  command
      ->add_option("--tokens", arguments->tokens,
                   "of a step with --softmax [4096; at most 512 with all words] or --memory [1024]")
      ->positive();
  Option* vanilla = add_bench_vanilla_options(*command, arguments->vanilla);
  vanilla->excludes(compare)->excludes(inference)->excludes(softmax);
  for (const char* other : {"--dtype", "--spans", "--filter", "--product-size"})
    vanilla->excludes(command->get_option(other));
  Option* memory = add_bench_product_keys_options(*command, arguments->memory);
  memory->excludes(compare)->excludes(inference)->excludes(softmax)->excludes(vanilla);
  for (const char* other : {"--config", "--set", "--filter", "--vocab", "--spans", "--dtype"})
    memory->excludes(command->get_option(other));
  command->add_flag("--json", arguments->json, "print one JSON object");
  command->callback([arguments] { run_bench(*arguments); });
  return command;
}

}  // namespace engram
