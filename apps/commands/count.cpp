#include "apps/commands/commands.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "apps/commands/report_output.hpp"
#include "apps/commands/shared_options.hpp"
#include "apps/data/data_set.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "apps/run/model/runtime.hpp"
#include "apps/run/training/rank_split.hpp"
#include "apps/studies/bench/cutoff_bench.hpp"
#include "apps/studies/cost/count_report.hpp"
#include "apps/studies/sweeps/sweep_plan.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

struct CountArguments {
  std::string config, data;
  std::vector<std::string> overrides;
  std::int64_t vocabulary = 0, target = 0;
  std::int64_t ranks = 0, split = 0, batch = 0;
  RankQuestion link;
  std::string device = "cpu";
  int threads = 0;
  std::string room, fit_key = "training.batch";
  bool memory = false;
  std::string cutoff_data;
  std::int64_t clusters = 0;
  int rounds = 5;
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

/// The configuration, with what options say in its place, and further overrides.
RunConfig counted_config(const CountArguments& arguments, const std::optional<data::DataSet>& data,
                         const std::vector<std::string>& further = {}) {
  std::vector<std::string> overrides = arguments.overrides;
  if (arguments.batch != 0) overrides.push_back(text("training.batch=", arguments.batch));
  if (arguments.split != 0) overrides.push_back(text("training.split=", arguments.split));
  overrides.insert(overrides.end(), further.begin(), further.end());
  RunConfig config = load_run_config(arguments.config, overrides);
  if (arguments.vocabulary != 0) config.model.set_vocabulary(arguments.vocabulary);
  if (data && config.model.vocabulary() == 0) config.model.set_vocabulary(data->vocabulary().size());
  if (config.model.vocabulary() == 0)
    throw UsageError(text("count: '", arguments.config,
                          "' takes its vocabulary from the data\n  say how many symbols there are with --vocab N"));
  return config;
}

/// Of --memory; nothing where it was not asked for.
std::optional<MemoryReport> memory_of(const CountArguments& arguments, const RunConfig& config,
                                      const std::optional<data::DataSet>& data, WorkProgress& progress) {
  if (!arguments.memory && arguments.room.empty()) return std::nullopt;
  const MemorySetting setting{.device = parse_device(arguments.device),
                              .threads = arguments.threads,
                              .ranks = static_cast<int>(std::max<std::int64_t>(1, arguments.ranks))};
  const data::ArticleSplit training = data ? data::ArticleSplit(*data, "train") : data::ArticleSplit(data::TokenView());
  progress.begin("counting memory");
  if (arguments.room.empty()) return memory_report(config, training, setting);
  FitReport fit{.keys = split_list(arguments.fit_key, ','), .room = parse_bytes(arguments.room)};
  const auto report_of = [&](std::int64_t value) {
    std::vector<std::string> values;
    for (const std::string& key : fit.keys) values.push_back(text(key, "=", value));
    return memory_report(counted_config(arguments, data, values), training, setting);
  };
  const std::int64_t split = config.training.split;
  const bool rows = std::ranges::count(fit.keys, "training.batch") >
                    0;  // in equal pieces, as the config says and as the ranks need them
  const std::int64_t unit = rows ? std::lcm(split, pieces_for_ranks(split, setting.ranks)) : 1;
  find_fit(fit, unit, [&](std::int64_t value) { return report_of(value).memory.total(); });
  MemoryReport report = report_of(fit.value > 0 ? fit.value : fit.smallest);
  report.fit = fit;
  return report;
}

/// --choose-cutoffs.
void run_choice(const CountArguments& arguments) {
  WorkProgress progress("timing clusters");
  const std::optional<data::DataSet> data(data::DataSet::open(arguments.cutoff_data));
  data->require_kind(data::TokenKind::word, "--choose-cutoffs cuts a vocabulary into clusters of words");
  const CutoffQuestion question{.config = counted_config(arguments, data),
                                .clusters = static_cast<std::size_t>(arguments.clusters),
                                .rounds = arguments.rounds};
  Runtime runtime(parse_device(arguments.device), arguments.threads);
  runtime.step().set_products(question.config.training.products);
  CutoffReport report = choose_cutoffs(question, data->split("train"), runtime,
                                       [&](std::int64_t done, std::int64_t all) { progress.at(done, all); });
  report.config = arguments.config;
  report.data = arguments.cutoff_data;
  progress.end();
  arguments.output.show(report);
}

void run_count(const CountArguments& arguments) {
  if (!arguments.cutoff_data.empty()) return run_choice(arguments);
  WorkProgress progress("counting");
  std::optional<data::DataSet> data;
  if (!arguments.data.empty()) data.emplace(data::DataSet::open(arguments.data));
  const RunConfig config = counted_config(arguments, data);
  CountReport report = count_report(config, data ? std::optional(data->split("train")) : std::nullopt);
  report.config = arguments.config;
  report.data = arguments.data;
  report.solved = solved_of(arguments, config.model);
  report.ranks = ranks_of(arguments, config);
  report.memory = memory_of(arguments, config, data, progress);
  progress.end();
  arguments.output.show(report);
}

/// Where the vocabulary is best cut.
void add_cutoff_options(Command& command, CountArguments& arguments) {
  Option* const choose = command.add_option(
      "--choose-cutoffs", arguments.cutoff_data,
      "folder of words: the cut-offs with which input and output take the least time for them on --device, by times of "
      "clusters of many sizes, in the place of all else");
  choose->value_name("FOLDER");
  for (const char* other : {"--data", "--solve", "--ranks", "--memory", "--fit-memory"})
    choose->excludes(command.get_option(other));
  command
      .add_option("--clusters", arguments.clusters,
                  "of --choose-cutoffs: how many there are to be [as many as the config has, else 4]")
      ->within(2, 16)
      ->needs(choose);
  command.add_option("--rounds", arguments.rounds, "of --choose-cutoffs: timed steps of every size")
      ->within(1, 1000)
      ->needs(choose)
      ->capture_default_str();
}

/// What memory is counted, and on what.
void add_memory_options(Command& command, CountArguments& arguments) {
  command.add_flag("--memory", arguments.memory,
                   "what the run keeps in memory and what its steps take, on --device: counted by steps that take "
                   "memory and compute nothing");
  command.add_option("--batch", arguments.batch, "rows of a batch, instead of the config's training.batch")->positive();
  add_device_option(command, arguments.device);
  add_threads_option(command, arguments.threads, "threads of the host, each with scratch memory; 0: all");
  Option* room = command
                     .add_option("--fit-memory", arguments.room,
                                 "the largest batch that fits into so much memory: 24GiB, 80GB or bytes")
                     ->value_name("BYTES");
  command
      .add_option("--fit-key", arguments.fit_key,
                  "of --fit-memory: the largest value of this key instead, as training.block or model.memory, or of "
                  "several that have one value: training.block,training.extension")
      ->value_name("KEY")
      ->needs(room)
      ->capture_default_str();
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
      ->positive();
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
  add_memory_options(*command, *arguments);
  add_cutoff_options(*command, *arguments);
  arguments->output.add_json(*command);
  command->callback([arguments] { run_count(*arguments); });
  return command;
}

}  // namespace engram
