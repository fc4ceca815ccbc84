#include "apps/commands/commands.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/commands/output.hpp"
#include "apps/commands/shared_options.hpp"
#include "apps/run/model/rank_share.hpp"
#include "apps/studies/sweeps/sweep.hpp"
#include "apps/studies/sweeps/sweep_report.hpp"
#include "apps/terminal/signals.hpp"
#include "core/communicator.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "core/log.hpp"

namespace engram {
namespace {

struct SweepArguments {
  std::string config, data, out, seeds, names;
  std::vector<std::string> vary, variants, overrides;
  std::string device = "cpu", dtype = "f32";
  int threads = 0;
  bool test = false, exact = false, dry_run = false, json = false;
};

SweepOptions options_of(const SweepArguments& arguments, Communicator& ranks) {
  SweepOptions options;
  options.config = arguments.config;
  options.data = arguments.data;
  options.out = arguments.out;
  options.overrides = arguments.overrides;
  options.variants =
      plan_variants(arguments.vary, arguments.variants,
                    arguments.names.empty() ? std::vector<std::string>() : split_list(arguments.names, ','));
  options.seeds = parse_seeds(arguments.seeds);
  const RankShare share = share_of(ranks);
  options.device = device_of_rank(arguments.device, share);
  const DType dtype = dtype_option("sweep", arguments.dtype, true);
  options.dtype = dtype == DType::bf16 ? DType::f32 : dtype;
  // Before --set and the variants, which may say otherwise.
  if (dtype == DType::bf16) options.overrides.insert(options.overrides.begin(), "training.products=bf16");
  options.threads = threads_of_rank(ranks, share, arguments.threads);
  options.test = arguments.test;
  options.exact = arguments.exact;
  return options;
}

void run_sweep(const SweepArguments& arguments, Communicator& ranks) {
  const SweepOptions options = options_of(arguments, ranks);
  const data::DataSet data = data::DataSet::open(options.data);
  const std::vector<SweepRun> runs = prepare_runs(options, data);
  const std::vector<std::string> warnings = sweep_warnings(options, runs);
  for (const std::string& warning : warnings) log(LogLevel::warning, warning);
  if (arguments.dry_run) {
    if (arguments.json) return print_json(json_of(options, runs, warnings));
    return print_report(table_of(runs));
  }
  if (!ranks.alone())
    log(LogLevel::info, text("sweep: ", runs.size(), " runs are dealt over ", ranks.size(),
                             " ranks; what follows is of the first one's"));
  std::vector<RunResult> results;
  run_until_stopped(ranks.alone(),
                    [&](const std::function<bool()>& stop) { results = run_sweep(options, data, runs, stop, ranks); });
  if (arguments.json) return print_json(json_of(options, runs, results, warnings));
  print_report(table_of(options, collect_variants(options, runs, results)));
}

}  // namespace

Command* add_sweep_command(Command& program, Communicator* ranks) {
  Command* command = program.add_subcommand("sweep", "train variants of a config and compare them in one table");
  const auto arguments = std::make_shared<SweepArguments>();
  command
      ->add_option("--config", arguments->config, "TOML file that all variants begin with, or a name of engram configs")
      ->required();
  command->add_option("--data", arguments->data, "data folder that engram prepare wrote")->required();
  command
      ->add_option("--out", arguments->out, "folder of the sweep: a run in each variant's folder, sweep.csv, runs.csv")
      ->required();
  command
      ->add_option("--vary", arguments->vary,
                   "section.key=v1,v2,...: a variant for each value; several --vary make a grid. Values with commas "
                   "are separated by semicolons: section.key=1,2;3,4")
      ->value_name("KEY=VALUES");
  command
      ->add_option("--variant", arguments->variants,
                   "NAME:section.key=value,section.key=value,...: one more variant, with all these values; NAME alone "
                   "is the config as it is")
      ->value_name("VARIANT");
  command->add_option("--name", arguments->names,
                      "names for the variants of --vary, in their order: a,b,c [from keys]");
  command->add_option("--seeds", arguments->seeds,
                      "train every variant with each of these seeds: 1,2,3 [the config's]");
  command->add_key_settings(arguments->overrides, "override keys of the config for all variants: section.key=value");
  command->add_flag("--test", arguments->test, "measure on the test split too");
  command->add_flag("--exact", arguments->exact, "measure as engram evaluate --exact does");
  command->add_flag("--dry-run", arguments->dry_run, "list the runs with their parameters and tokens; train nothing");
  add_device_option(*command, arguments->device);
  command->add_option("--dtype", arguments->dtype, "f32, bf16 (rounds operands of products) or f64")
      ->suggest({"f32", "bf16", "f64"})
      ->capture_default_str();
  add_threads_option(*command, arguments->threads);
  command->add_flag("--json", arguments->json, "print one JSON object");
  command->footer(
      "The same command again goes on with what was interrupted and trains nothing twice.\n"
      "engram keys lists the keys of a configuration.");
  command->callback([arguments, ranks] {
    OneRank alone;
    run_sweep(*arguments, ranks != nullptr ? *ranks : alone);
  });
  return command;
}

}  // namespace engram
