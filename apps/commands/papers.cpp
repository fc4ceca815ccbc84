#include <memory>
#include <string>

#include "apps/commands/commands.hpp"
#include "apps/commands/report_output.hpp"
#include "apps/studies/papers/paper_report.hpp"

namespace engram {
namespace {

struct PapersArguments {
  std::string paper, table;
  ReportOutput output;
};

void run_papers(const PapersArguments& arguments) {
  PaperReport report;
  if (!arguments.paper.empty()) {
    report.paper = &paper_named(arguments.paper);
    if (!arguments.table.empty()) report.tables = tables_named(*report.paper, arguments.table);
  }
  arguments.output.show(report);
}

}  // namespace

Command* add_papers_command(Command& program) {
  Command* command = program.add_subcommand("papers", "the papers' tables, row by row: configs, commands, figures");
  const auto arguments = std::make_shared<PapersArguments>();
  std::string names;
  for (const Paper& paper : all_papers()) names += (names.empty() ? "" : ", ") + paper.name;
  Option* paper = command->add_option("paper", arguments->paper, "one of them: " + names);
  command
      ->add_option("--table", arguments->table,
                   "tables or figures of the paper, with the commands of every row: 3, 'table 3', 'figure 2'")
      ->value_name("TABLE")
      ->needs(paper);
  arguments->output.add_json(*command);
  command->footer(
      "Published figures are cited. Ours are of small models: none of a paper's size has been trained with Engram.");
  command->callback([arguments] { run_papers(*arguments); });
  return command;
}

}  // namespace engram
