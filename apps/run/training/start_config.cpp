#include "apps/run/training/start_config.hpp"

#include <charconv>
#include <set>
#include <string_view>
#include <vector>

#include "apps/run/config/card_defaults.hpp"
#include "apps/run/config/config_text.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "core/error.hpp"
#include "core/log.hpp"

namespace engram {
namespace {

std::vector<std::string> all_overrides(const StartConfigOptions& options, const std::string& toml,
                                       const std::string& source) {
  std::vector<std::string> overrides = options.overrides;
  if (!options.steps) return overrides;
  overrides.push_back(text("schedule.steps=", *options.steps));
  constexpr std::string_view kWarmup = "schedule.warmup";
  std::int64_t warmup = 0;
  for (const Assignment& assignment : read_assignments(toml, source))
    if (assignment.full_name() == kWarmup)
      std::from_chars(assignment.value.data(), assignment.value.data() + assignment.value.size(), warmup);
  if (warmup < *options.steps || given_keys("", "", options.overrides).contains(std::string(kWarmup))) return overrides;
  overrides.push_back(text(kWarmup, "=", *options.steps / 10));
  log(LogLevel::info, text("a trial: of ", *options.steps, " steps ", *options.steps / 10,
                           " are the warm-up, in place of ", warmup, " (", kWarmup, ")"));
  return overrides;
}

/// That of the run whose weights are taken, for other data.
RunConfig config_of_source(const StartConfigOptions& options, const WeightSource& source) {
  const std::string name = text("the configuration of '", source.path().string(), "'");
  RunConfig own = source.facts().config;
  own.model.set_vocabulary(0);
  const std::string toml = to_toml(own);
  const std::vector<std::string> overrides = all_overrides(options, toml, name);
  // First, so that a key that is none is named, and not said to be missing under its right name.
  RunConfig config = parse_run_config(toml, name, overrides);
  // An imported model has a schedule that nobody chose.
  const std::set<std::string> given = given_keys("", "", overrides);
  if (!source.was_trained() && !(given.contains("schedule.rate") && given.contains("schedule.steps")))
    throw UsageError(text("training: weights that were not trained by Engram have no schedule, got '",
                          source.path().string(),
                          "'\n  give --steps N and --set schedule.rate=R optimizer.kind=KIND, or a --config"));
  choose_for_card(config, given, options.device, options.dtype);
  return config;
}

}  // namespace

RunConfig start_config(const StartConfigOptions& options, const std::optional<CheckpointFacts>& before,
                       const std::optional<WeightSource>& weights, const std::string& toml) {
  if (!options.config.empty()) {
    const std::string source = text("'", options.config.string(), "'");
    const std::vector<std::string> overrides = all_overrides(options, toml, source);
    RunConfig config = parse_run_config(toml, source, overrides);
    const std::set<std::string> given = given_keys(toml, source, overrides);
    if (!before) {
      choose_for_card(config, given, options.device, options.dtype);
      return config;
    }
    // What the command line of the run's first start asked for is in its own configuration only.
    const TrainingOptions& own = before->config.training;
    const auto stays = [&](const char* key, auto member) {
      if (!given.contains(key)) config.training.*member = own.*member;
    };
    stays("training.products", &TrainingOptions::products);
    stays("training.activations", &TrainingOptions::activations);
    stays("training.validate_as_trained", &TrainingOptions::validate_as_trained);
    stays("training.freeze", &TrainingOptions::freeze);
    if (!given.contains("model.logits_memory"))
      config.model.recurrent.logits_memory = before->config.model.recurrent.logits_memory;
    // Ranks may have raised it: with another one the last bits are others, and the caches start empty.
    if (config.training.batch % own.split == 0) stays("training.split", &TrainingOptions::split);
    return config;
  }
  if (weights) return config_of_source(options, *weights);
  if (!before)
    throw UsageError("training: --config must name a TOML file (only --resume and --from can do without), got none");
  const std::string own = to_toml(before->config), source = text("the run in '", options.out.string(), "'");
  return parse_run_config(own, source, all_overrides(options, own, source));
}

}  // namespace engram
