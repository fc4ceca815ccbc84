#include "apps/commands/bench_ways.hpp"

#include <filesystem>

#include "apps/commands/output.hpp"
#include "apps/commands/output_file.hpp"
#include "apps/data/files/read_file.hpp"
#include "apps/run/config/card_defaults.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "apps/run/config/shipped_configs.hpp"
#include "apps/run/model/rank_share.hpp"
#include "apps/run/training/rank_split.hpp"
#include "apps/studies/bench/bench_report.hpp"
#include "apps/studies/bench/side_by_side.hpp"
#include "apps/studies/bench/size_report.hpp"
#include "apps/studies/sweeps/sweep_plan.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/error.hpp"
#include "core/files/durable_file.hpp"
#include "core/files/json.hpp"
#include "core/log.hpp"

namespace engram {
namespace {

/// One long head and short others, the shape that spans take when they are learned.
std::vector<std::int64_t> ragged_spans(const AllAttentionOptions& model) {
  std::vector<std::int64_t> spans(static_cast<std::size_t>(model.heads), model.ramp);
  spans.front() = model.max_span;
  return spans;
}

std::vector<BenchCase> cases_of(const BenchModelsArguments& arguments, const BenchOptions& shared) {
  std::vector<std::string> files = shared.configs;
  if (files.empty() && arguments.compare_spans) files = {shipped_config("bench/bench-b").string()};
  if (files.empty()) {
    for (const char* name : {"bench/bench-a", "bench/bench-b", "bench/bench-c"})
      files.push_back(shipped_config(name).string());
    // Spans, and most keys that one would set, are of the other family.
    if (arguments.spans.empty() && shared.overrides.empty()) files.push_back(shipped_config("bench/bench-xl").string());
  }
  std::vector<std::string> overrides = shared.overrides;
  if (!shared.dtype.empty()) overrides.push_back("training.products=" + shared.dtype);
  const std::vector<SweepVariant> variants =
      arguments.vary.empty() ? std::vector<SweepVariant>(1) : plan_variants(arguments.vary, {}, {});
  std::vector<BenchCase> cases;
  const auto add = [&](const std::string& file, const SweepVariant& variant) {
    BenchCase one{std::filesystem::path(file).stem().string(), {}, arguments.spans};
    if (!variant.name.empty()) one.name += " " + variant.name;
    if (one.name.find(arguments.filter) == std::string::npos) return;
    std::vector<std::string> all = overrides;
    all.insert(all.end(), variant.overrides.begin(), variant.overrides.end());
    one.config = load_run_config(file, all);
    if (const DeviceKind kind = parse_device(shared.device).kind; kind == DeviceKind::cuda)
      choose_for_card(one.config, given_keys(data::read_bytes(find_config(file)), file, all), kind, DType::f32);
    if (arguments.compare_spans) require_all_attention(one.config.model, "bench --compare-spans");
    if (!arguments.spans.empty()) require_all_attention(one.config.model, "bench --spans");
    if (shared.vocabulary != 0) one.config.model.set_vocabulary(shared.vocabulary);
    // Before the machine is measured, which takes seconds.
    if (one.config.model.vocabulary() < 1)
      throw UsageError(text("bench: '", one.name, "' takes its vocabulary from the data\n  --vocab N gives one"));
    if (arguments.spans.empty() && one.name == "bench-b") one.spans = ragged_spans(one.config.model.all_attention);
    cases.push_back(std::move(one));
  };
  for (const std::string& file : files)
    for (const SweepVariant& variant : variants) add(file, variant);
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

/// Where this rank computes, which is said where there are others.
RankBenchSetting setting_of(const BenchModelsArguments& arguments, const BenchOptions& shared,
                            const std::vector<BenchCase>& cases, Communicator& ranks) {
  RankBenchSetting setting{.device = parse_device(shared.device),
                           .threads = shared.threads,
                           .steps = shared.steps,
                           .alone_seconds = arguments.one_rank_ms / 1e3};
  if (arguments.one_rank_ms > 0 && (ranks.alone() || cases.size() != 1))
    throw UsageError(text("bench: --one-rank-ms must be of one config on several ranks, got ", cases.size(),
                          " configs on ", ranks.size(),
                          " ranks\n  docs/guide/several-processes.md says how to start them"));
  if (ranks.alone()) return setting;
  if (arguments.compare_spans || arguments.inference)
    throw UsageError(text("bench: --compare-spans and --inference must be of one process, got ", ranks.size()));
  for (const BenchCase& bench : cases) split_for_ranks(bench.config, ranks.size());  // before the machine is measured
  const RankShare share = share_of(ranks);
  setting.device = device_of_rank(shared.device, share);
  setting.threads = threads_of_rank(ranks, share, shared.threads);
  log(LogLevel::info, share_text(share, ranks.size(), setting.threads, cores_of_host()));
  return setting;
}

}  // namespace

void bench_models(const BenchModelsArguments& arguments, const BenchOptions& shared, Communicator& ranks) {
  check_output_file("bench: --svg", shared.svg, {kSvgBeginning});
  const std::vector<BenchCase> cases = cases_of(arguments, shared);
  if (!shared.svg.empty() && cases.size() < 2)
    throw UsageError(text("bench: --svg must be of several configs, got ", cases.size(),
                          "\n  --vary model.width=32,64,128 makes three of one"));
  const RankBenchSetting setting = setting_of(arguments, shared, cases, ranks);
  const Device device = setting.device;
  WorkProgress progress("measuring the machine");
  const MachineLimits machine = measure_limits(Runtime(device, setting.threads).backend(), shared.product_size);
  nlohmann::json object{{"machine", json_of(machine)}, {"device", text(device)}};
  if (!shared.json) print_report(table_of(machine));

  const auto begin = [&](const std::string& name) {
    if (shared.json) log(LogLevel::info, text("bench ", name, " ..."));
    progress.begin("timing " + name);
  };
  const auto measure = [&](const BenchCase& bench) {
    const MachineLimits limits = machine.with(bench.config.training.products);
    begin(bench.name);
    BenchResult result = bench_ranks(bench, limits, setting, ranks);
    object["configs"].push_back(json_of(bench, result, limits));
    if (!shared.json) print_report(table_of(bench, result, limits));
    return result;
  };
  if (arguments.side_by_side) {
    begin(cases.size() == 1 ? cases.front().name : text(cases.size(), " configs in turns"));
    Runtime runtime(device, setting.threads);
    const std::vector<SideBySide> results = bench_side_by_side(cases, runtime, shared.steps);
    object["side_by_side"] = json_of(results);
    if (!shared.json) print_report(table_of(results));
    progress.end();
    if (shared.json) print_json(object);
    return;
  }
  std::vector<StepOfSize> sizes;
  for (const BenchCase& bench : cases) {
    if (arguments.inference) {
      begin(bench.name);
      Runtime runtime(device, setting.threads, bench.config.training.seed);
      const InferenceResult result = bench_inference(bench, machine, runtime, shared.steps);
      object["inference"].push_back(json_of(bench, result));
      if (!shared.json) print_report(table_of(bench, result));
      continue;
    }
    if (!arguments.compare_spans) {
      sizes.push_back(step_of_size(bench, measure(bench)));
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
    if (!shared.json) print_report(table_of(comparison));
  }
  progress.end();
  if (shared.json)
    print_json(object);
  else
    print_report(table_of(sizes));
  if (!shared.svg.empty() && ranks.leads()) write_durably(shared.svg, svg_of(sizes));
}

}  // namespace engram
