#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/commands/commands.hpp"
#include "apps/commands/output_file.hpp"
#include "apps/commands/page_arguments.hpp"
#include "apps/commands/report_output.hpp"
#include "apps/studies/page/page_sources.hpp"
#include "apps/studies/page/page_text.hpp"
#include "apps/studies/tensorboard/tensorboard_export.hpp"
#include "core/error.hpp"
#include "core/files/durable_file.hpp"
#include "core/log.hpp"

namespace engram {
namespace {

struct ReportArguments {
  PageArguments page;
  std::string out = "report.html";
  std::string tensorboard;
  ReportOutput output;
};

void write_page(const ReportArguments& arguments) {
  check_output_file("report: --out", arguments.out, {kPageBeginning});
  const Page page = arguments.page.read("report");
  const std::string html = html_of(page);
  write_durably(arguments.out, html);
  print(fmt::format("{}: {} {}, {}\n", arguments.out, page.runs.size(), page.runs.size() == 1 ? "run" : "runs",
                    bytes_text(static_cast<double>(html.size()))));
}

void write_events(const ReportArguments& arguments) {
  const PageSources sources = find_sources(arguments.page.runs);
  for (const std::string& problem : sources.problems) log(LogLevel::warning, problem);
  std::vector<std::filesystem::path> folders;
  for (const PageSource& source : sources.runs)
    if (source.folder.empty())
      log(LogLevel::warning, text("'", source.checkpoint.string(), "' is a checkpoint, which has no reports"));
    else
      folders.push_back(source.folder);
  arguments.output.say(write_tensorboard(folders, arguments.tensorboard));
}

void run_report(const Command& command, const ReportArguments& arguments) {
  if (arguments.tensorboard.empty()) {
    if (arguments.output.json)
      throw UsageError("report: --json must have --tensorboard DIR beside it: it says what was written there");
    return write_page(arguments);
  }
  write_events(arguments);
  if (command.count("--out") > 0) write_page(arguments);
}

}  // namespace

Command* add_report_command(Command& program) {
  Command* command = program.add_subcommand("report", "show runs, sweeps and checkpoints in one HTML file");
  const auto arguments = std::make_shared<ReportArguments>();
  arguments->page.add_to(*command);
  command->add_option("--out", arguments->out, "the file, which any browser opens")->capture_default_str();
  command->add_option("--tensorboard", arguments->tensorboard,
                      "write event files for TensorBoard into this folder, a folder for each run; no page then, unless "
                      "--out asks for it");
  arguments->output.add_json(*command);
  command->footer(
      "The file is whole: it asks nothing of the network, and may be mailed or kept. What cannot be read is said in it "
      "and on stderr; the other runs are shown.");
  command->callback([command, arguments] { run_report(*command, *arguments); });
  return command;
}

}  // namespace engram
