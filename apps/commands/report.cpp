#include "apps/commands/commands.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/commands/report_output.hpp"
#include "apps/studies/tensorboard/tensorboard_export.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

struct ReportArguments {
  std::vector<std::string> runs;
  std::string tensorboard;
  ReportOutput output;
};

void run_report(const ReportArguments& arguments) {
  if (arguments.tensorboard.empty())
    throw UsageError("report: --tensorboard must name a folder for event files, got none");
  const std::vector<std::filesystem::path> runs(arguments.runs.begin(), arguments.runs.end());
  arguments.output.say(write_tensorboard(runs, arguments.tensorboard));
}

}  // namespace

Command* add_report_command(Command& program) {
  Command* command = program.add_subcommand("report", "what runs reported, for programs that draw it");
  const auto arguments = std::make_shared<ReportArguments>();
  command->add_option("runs", arguments->runs, "folders of runs")->required()->value_name("RUN");
  command->add_option("--tensorboard", arguments->tensorboard,
                      "write event files for TensorBoard into this folder, a folder for each run");
  arguments->output.add_json(*command);
  command->callback([arguments] { run_report(*arguments); });
  return command;
}

}  // namespace engram
