#include "apps/studies/comparisons/study_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "apps/run/config/run_config_file.hpp"
#include "apps/run/cost/parameter_groups.hpp"
#include "apps/run/model/runtime.hpp"
#include "apps/run/training/session.hpp"
#include "apps/studies/bench/bench_model.hpp"
#include "apps/studies/bench/training_bench.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

RunConfig config_of(const StudyPlan& plan, const SweepVariant& variant, const data::DataSet& data) {
  try {
    return resolved_config(load_run_config(plan.config, variant.overrides), data);
  } catch (const UsageError& error) {
    throw UsageError(text("study: variant '", variant.name, "': ", error.what()));
  }
}

std::int64_t scaled(std::int64_t steps, double share) { return std::llround(static_cast<double>(steps) * share); }

StudyVariant measured(const StudyPlan& plan, const SweepVariant& variant, const data::DataSet& data, int threads) {
  const RunConfig config = config_of(plan, variant, data);
  if (config.training.finetune_steps > 0)
    throw UsageError(text("study: training.finetune_steps must be 0, got ", config.training.finetune_steps,
                          " of variant '", variant.name, "'"));
  Runtime runtime(Device{}, threads);
  const StepCost cost = BenchModel({variant.name, config, {}}, runtime.backend()).cost(config.training.block);
  return {.name = variant.name,
          .parameters = count_parameters(*make_model(config.model)).total,
          .flops = cost.training.total(),
          .rate = config.schedule.rate,
          .warmup = config.schedule.warmup,
          .full_steps = config.schedule.steps,
          .steps = 0,
          .step_tokens = config.training.batch * config.training.block,
          .checkpoint_every = config.training.checkpoint_every};
}

void check_budgets(const StudyPlan& plan, const std::vector<StudyVariant>& variants) {
  const auto by_parameters = [](const StudyVariant& left, const StudyVariant& right) {
    return left.parameters < right.parameters;
  };
  const auto [least, most] = std::ranges::minmax_element(variants, by_parameters);
  if (plan.equal_in(Budget::parameters) &&
      static_cast<double>(most->parameters) > (1 + plan.tolerance) * static_cast<double>(least->parameters))
    throw UsageError(text("study: variants must have the same number of parameters within ", plan.tolerance * 100,
                          "%, got ", least->parameters, " of '", least->name, "' and ", most->parameters, " of '",
                          most->name, "'"));
  for (const StudyVariant& variant : variants)
    if (plan.equal_in(Budget::tokens) &&
        variant.full_steps * variant.step_tokens != variants.front().full_steps * variants.front().step_tokens)
      throw UsageError(text("study: variants must be trained on the same number of tokens, got ",
                            variant.full_steps * variant.step_tokens, " of '", variant.name, "' and ",
                            variants.front().full_steps * variants.front().step_tokens, " of '", variants.front().name,
                            "'"));
}

/// What a run of this many steps has beside what its variant says.
std::vector<std::string> length_settings(const StudyVariant& variant, std::int64_t steps) {
  const double share = static_cast<double>(steps) / static_cast<double>(variant.full_steps);
  return {text("schedule.steps=", steps), text("schedule.warmup=", scaled(variant.warmup, share)),
          text("training.validate_every=", steps),
          text("training.checkpoint_every=", std::min(steps, variant.checkpoint_every))};
}

SweepVariant with_length(const StudyPlan& plan, std::size_t index, const StudyVariant& variant, std::int64_t steps,
                         double multiple) {
  SweepVariant made{variant.name, {}};
  for (const std::string& override : plan.variants[index].overrides) {
    const std::string_view key = std::string_view(override).substr(0, override.find('='));
    if (key != "schedule.rate" && key != "schedule.steps" && key != "schedule.warmup" &&
        key != "training.validate_every" && key != "training.checkpoint_every")
      made.overrides.push_back(override);
  }
  for (std::string& setting : length_settings(variant, steps)) made.overrides.push_back(std::move(setting));
  made.overrides.push_back(fmt::format("schedule.rate={}", variant.rate * multiple));
  return made;
}

SweepOptions sweep_options(const StudyPlan& plan, const StudyOptions& options, std::string_view folder) {
  SweepOptions sweep;
  sweep.config = plan.config;
  sweep.data = options.data;
  sweep.out = options.out / folder;
  sweep.threads = options.threads;
  return sweep;
}

}  // namespace

std::int64_t StudyVariant::trial_steps(const StudyPlan& plan) const {
  return std::max<std::int64_t>(1, scaled(steps, plan.trial_share));
}

std::vector<StudyVariant> study_variants(const StudyPlan& plan, const StudyOptions& options,
                                         const data::DataSet& data) {
  // Found now, not when all is trained.
  if (const std::int64_t tokens = data.split("test").size(); tokens / plan.block < 2)
    throw UsageError(text("study: block must be so short that the test split has two of them or more, got a block of ",
                          plan.block, " tokens and a split of ", tokens));
  std::vector<StudyVariant> variants;
  for (const SweepVariant& variant : plan.variants) variants.push_back(measured(plan, variant, data, options.threads));
  check_budgets(plan, variants);
  const StudyVariant& first = variants.front();
  const double arithmetic = static_cast<double>(first.full_steps * first.step_tokens) * first.flops;
  for (StudyVariant& variant : variants) {
    if (plan.equal_in(Budget::arithmetic)) {
      const auto of_config = static_cast<double>(variant.full_steps);
      variant.full_steps = std::llround(arithmetic / variant.flops / static_cast<double>(variant.step_tokens));
      // The same share of every variant's run: one of few steps would else hardly come to its rate.
      variant.warmup = scaled(variant.warmup, static_cast<double>(variant.full_steps) / of_config);
    }
    variant.steps = scaled(variant.full_steps, options.budget);
    if (variant.steps < 2)
      throw UsageError(text("study: a budget must leave two steps or more, got ", variant.steps, " of ",
                            variant.full_steps, " of '", variant.name, "'"));
  }
  return variants;
}

std::vector<SweepRun> trial_runs(const StudyPlan& plan, const StudyOptions& options, const data::DataSet& data,
                                 const std::vector<StudyVariant>& variants) {
  SweepOptions sweep = sweep_options(plan, options, "trials");
  sweep.seeds = {plan.trial_seed};
  for (std::size_t v = 0; v < variants.size(); ++v)
    for (const double multiple : plan.rates) {
      sweep.variants.push_back(with_length(plan, v, variants[v], variants[v].trial_steps(plan), multiple));
      sweep.variants.back().name += fmt::format("-rate-{}", multiple);
    }
  return prepare_runs(sweep, data);
}

std::vector<SweepRun> compared_runs(const StudyPlan& plan, const StudyOptions& options, const data::DataSet& data,
                                    const std::vector<StudyVariant>& variants,
                                    const std::vector<std::optional<double>>& rates) {
  SweepOptions sweep = sweep_options(plan, options, "runs");
  sweep.seeds = plan.seeds;
  std::vector<std::size_t> places;
  for (std::size_t v = 0; v < variants.size(); ++v) {
    if (!rates[v]) continue;
    sweep.variants.push_back(with_length(plan, v, variants[v], variants[v].steps, *rates[v]));
    places.push_back(v);
  }
  if (places.empty()) return {};
  std::vector<SweepRun> runs = prepare_runs(sweep, data);
  for (SweepRun& run : runs) run.variant = places[run.variant];
  // Of an unfinished study all variants have the same number of seeds, nearly.
  std::ranges::stable_sort(runs, {}, [&plan](const SweepRun& run) {
    return std::ranges::find(plan.seeds, run.config.training.seed) - plan.seeds.begin();
  });
  return runs;
}

std::vector<double> step_seconds(const StudyPlan& plan, const StudyOptions& options, const data::DataSet& data,
                                 const std::vector<StudyVariant>& variants) {
  constexpr std::int64_t kSteps = 5;
  std::vector<double> seconds;
  for (std::size_t v = 0; v < variants.size(); ++v) {
    Runtime runtime(Device{}, options.threads);
    const BenchCase bench{variants[v].name, config_of(plan, plan.variants[v], data), {}};
    const BenchResult result = bench_training(bench, MachineLimits{}, runtime, kSteps);
    // One thread's own time is what a machine of nobody else would take; of several, some of it is waiting.
    seconds.push_back(options.threads == 1 ? result.processor_seconds : result.seconds.front());
  }
  return seconds;
}

}  // namespace engram
