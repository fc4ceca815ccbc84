#include "apps/commands/commands.hpp"

#include <filesystem>
#include <memory>
#include <string>

#include "apps/commands/report_output.hpp"
#include "apps/run/folder/metrics_reader.hpp"
#include "apps/run/training/gradient_history.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

struct GradientsArguments {
  std::string run;
  ReportOutput output;
};

void run_gradients(const GradientsArguments& arguments) {
  arguments.output.check("gradients", {"step,tensor,"});
  const std::filesystem::path metrics = std::filesystem::path(arguments.run) / "metrics.jsonl";
  WorkProgress progress(text("reading '", metrics.string(), "'"));
  const GradientHistory history{arguments.run, read_reports(metrics, "gradients")};
  if (history.reports.empty())
    throw UsageError(text("gradients: '", metrics.string(), "' must have gradient reports, got none",
                          "\n  --set training.gradient_report=true has a run write them, also one that is resumed"));
  progress.end();
  arguments.output.show(history);
}

}  // namespace

Command* add_gradients_command(Command& program) {
  Command* command = program.add_subcommand("gradients", "show norms and clipping of gradients, and what moves spans");
  const auto arguments = std::make_shared<GradientsArguments>();
  command->add_option("run", arguments->run, "folder of a run with training.gradient_report = true")->required();
  command->add_option("--csv", arguments->output.csv, "write the norms of every report to this file");
  command->add_flag("--json", arguments->output.json, "print all reports as one JSON object");
  command->callback([arguments] { run_gradients(*arguments); });
  return command;
}

}  // namespace engram
