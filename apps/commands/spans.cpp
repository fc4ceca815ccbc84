#include "apps/commands/commands.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "apps/commands/model_arguments.hpp"
#include "apps/commands/report_output.hpp"
#include "apps/studies/spans/span_report.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

struct SpansArguments {
  RunArguments trained;
  ReportOutput output;
  bool history = false;
  bool cost = false;
};

void run_spans(const SpansArguments& arguments) {
  arguments.output.check("spans", {"layer,head,zeta,", "step,layer,head,"});
  const std::filesystem::path run_dir = arguments.trained.run;
  WorkProgress progress(text("reading '", arguments.trained.run, "'"));
  const CheckpointFile file(find_checkpoint(run_dir, arguments.trained.kind()));
  const CheckpointFacts facts = read_facts(file);
  const RunConfig& config = facts.config;
  SpanReport report{.name = text(arguments.trained.run, " at step ", facts.step),
                    .checkpoint = file.path().string(),
                    .step = facts.step,
                    .model = require_all_attention(config.model, "spans"),
                    .layers = {},
                    .statistics = {},
                    .history = {},
                    .cost = {}};
  report.layers = read_spans(file, report.model);
  report.statistics = span_statistics(report.model, report.layers, config.training.block);
  const std::filesystem::path metrics = run_dir / "metrics.jsonl";
  if (arguments.history) report.history = read_span_history(metrics);
  if (arguments.cost) {
    report.cost = span_cost(config, report.layers);
    std::error_code ignored;
    if (std::filesystem::exists(metrics, ignored))
      report.cost->shortfalls = shortfalls_at(read_span_history(metrics), facts.step);
  }
  progress.end();
  arguments.output.show(report);
}

}  // namespace

Command* add_spans_command(Command& program) {
  Command* command = program.add_subcommand("spans", "show how far each head of a trained model looks back");
  const auto arguments = std::make_shared<SpansArguments>();
  arguments->trained.add_run(*command);
  command->add_option("--csv", arguments->output.csv,
                      "write zeta and positions of every head to this file; with --history those of every report");
  command->add_option(
      "--svg", arguments->output.svg,
      "draw the heads of every layer into this file; with --history also the layers' means over the steps");
  command->add_flag("--history", arguments->history, "how they changed, from the run's metrics.jsonl");
  command->add_flag("--cost", arguments->cost, "what the spans save, in arithmetic and in memory for caches");
  arguments->trained.add_best(*command);
  arguments->output.add_json(*command);
  command->callback([arguments] { run_spans(*arguments); });
  return command;
}

}  // namespace engram
