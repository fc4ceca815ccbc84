#include <fmt/format.h>

#include <memory>
#include <string>

#include "apps/commands/commands.hpp"
#include "apps/commands/output.hpp"
#include "apps/commands/output_file.hpp"
#include "apps/commands/page_arguments.hpp"
#include "apps/studies/page/page_text.hpp"
#include "core/files/durable_file.hpp"

namespace engram {
namespace {

struct ReportArguments {
  PageArguments page;
  std::string out = "report.html";
};

void run_report(const ReportArguments& arguments) {
  check_output_file("report: --out", arguments.out, {kPageBeginning});
  const Page page = arguments.page.read("report");
  const std::string html = html_of(page);
  write_durably(arguments.out, html);
  print(fmt::format("{}: {} {}, {}\n", arguments.out, page.runs.size(), page.runs.size() == 1 ? "run" : "runs",
                    bytes_text(static_cast<double>(html.size()))));
}

}  // namespace

Command* add_report_command(Command& program) {
  Command* command = program.add_subcommand("report", "show runs, sweeps and checkpoints in one HTML file");
  const auto arguments = std::make_shared<ReportArguments>();
  arguments->page.add_to(*command);
  command->add_option("--out", arguments->out, "the file, which any browser opens")->capture_default_str();
  command->footer(
      "The file is whole: it asks nothing of the network, and may be mailed or kept. What cannot be read is said in it "
      "and on stderr; the other runs are shown.");
  command->callback([arguments] { run_report(*arguments); });
  return command;
}

}  // namespace engram
