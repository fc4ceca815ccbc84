#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/commands/commands.hpp"
#include "apps/commands/output.hpp"
#include "apps/commands/output_file.hpp"
#include "apps/commands/page_arguments.hpp"
#include "apps/studies/page/page_text.hpp"
#include "apps/studies/tensorboard/tensorboard_export.hpp"
#include "apps/terminal/bytes_text.hpp"
#include "core/files/durable_file.hpp"
#include "core/files/json.hpp"
#include "core/log.hpp"

namespace engram {
namespace {

struct ReportArguments {
  PageArguments page;
  std::string out = "report.html", tensorboard;
  bool json = false;
};

/// What was written of the page.
struct WrittenPage {
  std::string file;
  std::size_t runs = 0, bytes = 0;
  std::vector<std::string> problems;
};

std::string table_of(const WrittenPage& page) {
  return fmt::format("{}: {} {}, {}\n", page.file, page.runs, page.runs == 1 ? "run" : "runs",
                     bytes_text(static_cast<double>(page.bytes)));
}

nlohmann::json json_of(const WrittenPage& page) {
  return {{"out", page.file}, {"runs", page.runs}, {"bytes", page.bytes}, {"problems", page.problems}};
}

WrittenPage write_page(const ReportArguments& arguments) {
  const Page page = arguments.page.read("report");
  const std::string html = html_of(page);
  write_durably(arguments.out, html);
  WrittenPage written{.file = arguments.out, .runs = page.runs.size(), .bytes = html.size(), .problems = page.problems};
  for (const PageRun& run : page.runs)
    for (const std::string& problem : run.all_problems()) written.problems.push_back(problem);
  return written;
}

/// `wants_page`: an --out was given, or nothing else is wanted.
void run_report(const ReportArguments& arguments, bool wants_page) {
  if (wants_page) check_output_file("report: --out", arguments.out, {kPageBeginning});
  const std::vector<std::filesystem::path> runs(arguments.page.runs.begin(), arguments.page.runs.end());
  std::optional<TensorboardExport> events;
  if (!arguments.tensorboard.empty()) {
    events = write_tensorboard(runs, arguments.tensorboard);
    for (const std::string& problem : events->problems) log(LogLevel::warning, problem);
  }
  std::optional<WrittenPage> page;
  if (wants_page) page = write_page(arguments);
  if (!arguments.json) return print_report((events ? table_of(*events) : "") + (page ? table_of(*page) : ""));
  if (events && page) return print_json({{"tensorboard", json_of(*events)}, {"page", json_of(*page)}});
  print_json(events ? json_of(*events) : json_of(*page));
}

}  // namespace

Command* add_report_command(Command& program) {
  Command* command = program.add_subcommand("report", "show runs, sweeps and checkpoints in one HTML file");
  const auto arguments = std::make_shared<ReportArguments>();
  arguments->page.add_to(*command);
  command->add_option("--out", arguments->out, "the file, which any browser opens")
      ->capture_default_str()
      ->value_name("FILE");
  command
      ->add_option("--tensorboard", arguments->tensorboard,
                   "write event files for TensorBoard into this folder, a folder for each run; without --out nothing "
                   "else")
      ->value_name("FOLDER");
  command->add_flag("--json", arguments->json, "print one JSON object");
  command->footer(
      "The file is whole: it asks nothing of the network, and may be mailed or kept. What cannot be read is said in it "
      "and on stderr; the other runs are shown.");
  command->callback(
      [command, arguments] { run_report(*arguments, command->count("--out") > 0 || arguments->tensorboard.empty()); });
  return command;
}

}  // namespace engram
