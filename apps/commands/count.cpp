#include "apps/commands/commands.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/commands/report_output.hpp"
#include "apps/data/data_set.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "apps/studies/cost/count_report.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

struct CountArguments {
  std::string config, data;
  std::vector<std::string> overrides;
  std::int64_t vocabulary = 0, target = 0;
  std::int64_t ranks = 0, split = 0;
  RankQuestion link;
  ReportOutput output;
  bool solve = false;
};

/// Of --ranks; nothing where it was not asked for.
std::optional<RankReport> ranks_of(const CountArguments& arguments, const RunConfig& config) {
  if (arguments.ranks == 0) return std::nullopt;
  RankQuestion question = arguments.link;
  question.ranks = static_cast<int>(arguments.ranks);
  return rank_report(config, question);
}

/// Of --solve; nothing where it was not asked for.
std::optional<SolvedWidth> solved_of(const CountArguments& arguments, const ModelOptions& model) {
  if (!arguments.solve) return std::nullopt;
  if (model.family != ModelFamily::recurrent)
    throw UsageError(text("count: --solve must be for a model of family recurrent, got ", name_of(model.family)));
  return solve_width(model.recurrent, arguments.target);
}

void run_count(const CountArguments& arguments) {
  WorkProgress progress("counting");
  RunConfig config = load_run_config(arguments.config, arguments.overrides);
  if (arguments.split != 0) {
    config.training.split = arguments.split;
    config.check();
  }
  if (arguments.vocabulary != 0) config.model.set_vocabulary(arguments.vocabulary);
  std::optional<data::DataSet> data;
  if (!arguments.data.empty()) {
    data.emplace(data::DataSet::open(arguments.data));
    if (config.model.vocabulary() == 0) config.model.set_vocabulary(data->vocabulary().size());
  }
  if (config.model.vocabulary() == 0)
    throw UsageError(text("count: '", arguments.config,
                          "' takes its vocabulary from the data\n  say how many symbols there are with --vocab N"));
  CountReport report = count_report(config, data ? std::optional(data->split("train")) : std::nullopt);
  report.config = arguments.config;
  report.data = arguments.data;
  report.solved = solved_of(arguments, config.model);
  report.ranks = ranks_of(arguments, config);
  progress.end();
  arguments.output.show(report);
}

}  // namespace

Command* add_count_command(Command& program) {
  Command* command = program.add_subcommand("count", "count a model's parameters, memory and arithmetic");
  const auto arguments = std::make_shared<CountArguments>();
  command->add_option("--config", arguments->config, "TOML file of the run, or a name of engram configs")->required();
  command->add_key_settings(arguments->overrides, "override keys of the config: section.key=value");
  command->add_option("--vocab", arguments->vocabulary, "symbols of the vocabulary, instead of the config's")
      ->positive();
  command->add_option("--data", arguments->data,
                      "data folder: its vocabulary, and how many of its words are in each cluster (model.cutoffs)");
  Option* solve = command->add_flag("--solve", arguments->solve,
                                    "recurrent models: the width that has the number of parameters of an LSTM as wide "
                                    "as the input's vectors, which do not count");
  command->add_option("--target", arguments->target, "this number of parameters instead")->positive()->needs(solve);
  Option* ranks = command->add_option("--ranks", arguments->ranks,
                                      "what each of so many processes keeps in memory and sends in a step");
  ranks->within(2, 4096);
  command->add_option("--split", arguments->split, "pieces of a batch, instead of the config's training.split")
      ->positive()
      ->needs(ranks);
  Option* bandwidth = command->add_option("--bandwidth", arguments->link.gigabits,
                                          "Gbit/s of each rank's link, each way: how long a step waits for it");
  bandwidth->within(1e-6, 1e9)->needs(ranks);
  command->add_option("--latency", arguments->link.latency, "microseconds until something sent begins to arrive")
      ->within(0, 1e9)
      ->needs(bandwidth)
      ->capture_default_str();
  command
      ->add_option("--step-seconds", arguments->link.step_seconds,
                   "seconds of a step of one rank, as engram bench measures them: what backward hides, and the "
                   "efficiency of all ranks")
      ->within(1e-9, 1e9)
      ->needs(bandwidth);
  arguments->output.add_json(*command);
  command->callback([arguments] { run_count(*arguments); });
  return command;
}

}  // namespace engram
