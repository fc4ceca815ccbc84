#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "apps/commands/commands.hpp"
#include "apps/commands/output.hpp"
#include "apps/commands/shared_options.hpp"
#include "apps/studies/comparisons/study_report.hpp"
#include "apps/terminal/signals.hpp"
#include "core/error.hpp"
#include "core/files/durable_file.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

struct ComparisonArguments {
  std::string study, data, out;
  double budget = 1;
  int threads = 0;
  bool dry_run = false, json = false;
};

void forecast_study(const ComparisonArguments& arguments, const StudyPlan& plan, const StudyOptions& options,
                    const data::DataSet& data) {
  StudyForecast forecast{.plan = plan,
                         .options = options,
                         .variants = study_variants(plan, options, data),
                         .step_seconds = {},
                         .held_out_tokens = std::max(data.split("valid").size(), data.split("test").size())};
  trial_runs(plan, options, data, forecast.variants);  // refuses what the study would refuse
  forecast.step_seconds = step_seconds(plan, options, data, forecast.variants);
  if (arguments.json) return print_json(json_of(forecast));
  print_report(table_of(forecast));
}

void run_study_command(const ComparisonArguments& arguments) {
  const StudyPlan plan = read_study(arguments.study);
  const data::DataSet data = data::DataSet::open(arguments.data);
  const StudyOptions options{
      .data = arguments.data, .out = arguments.out, .budget = arguments.budget, .threads = arguments.threads};
  if (arguments.dry_run) return forecast_study(arguments, plan, options, data);
  StudyReport report;
  run_until_stopped(true, [&](const std::function<bool()>& stop) { report = run_study(plan, options, data, stop); });
  const std::filesystem::path out = arguments.out;
  write_durably(out / "study.csv", csv_of(report));
  write_durably(out / "study.json", json_of(report).dump(2) + "\n");
  const bool any =
      std::ranges::any_of(report.comparisons, [](const StudyComparison& one) { return one.measured.has_value(); });
  if (any) write_durably(out / "study.svg", svg_of(report));
  if (arguments.json) return print_json(json_of(report));
  print_report(table_of(report));
}

}  // namespace

Command* add_study_command(Command& program) {
  Command* command = program.add_subcommand("study", "compare variants at their best rates, with intervals");
  const auto arguments = std::make_shared<ComparisonArguments>();
  command->add_option("study", arguments->study, "file of a study, or the name of one that comes with the program")
      ->required();
  command->add_option("--data", arguments->data, "data folder that engram prepare wrote")->required();
  command
      ->add_option("--out", arguments->out,
                   "folder of the study: trials, runs, losses, study.csv, study.json, study.svg")
      ->required();
  command->add_option("--budget", arguments->budget, "multiplies the steps of all runs: 0.1 takes a tenth of the time")
      ->positive()
      ->capture_default_str();
  command->add_flag("--dry-run", arguments->dry_run,
                    "list variants with parameters, tokens and minutes, by a few steps of each; keep nothing");
  add_threads_option(*command, arguments->threads);
  command->add_flag("--json", arguments->json, "print one JSON object");
  command->footer(
      "The same command again goes on with what was interrupted and trains nothing twice.\n"
      "docs/reference/study.md says what a study is, and how its intervals are computed.");
  command->callback([arguments] { run_study_command(*arguments); });
  return command;
}

}  // namespace engram
