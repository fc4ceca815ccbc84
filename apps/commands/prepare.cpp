#include "apps/commands/commands.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "apps/commands/output.hpp"
#include "apps/commands/prepare_arguments.hpp"
#include "apps/data/data_set.hpp"
#include "apps/data/prepare/prepare_report.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

void run_prepare(const PrepareArguments& arguments, const Command& command) {
  data::PrepareOptions options = arguments.options();
  std::error_code ignored;
  const bool replaced = std::filesystem::exists(options.out / data::kDataFile, ignored);
  WorkProgress progress("preparing");
  options.watch = {.begin = [&progress](const std::string& what) { progress.begin(what, "bytes"); },
                   .at = progress.watch()};
  const data::PrepareSummary summary = data::prepare(options);
  progress.end();

  std::string lines = table_of(summary);
  for (const std::string& note : summary.notes) lines += "note: " + note + "\n";
  if (command.count("--rule") > 0)
    lines += text("note: --rule is called --characters now (--characters ", arguments.old_rule,
                  "); --rules is another option, of whole published preparations\n");
  lines +=
      fmt::format("vocabulary of {} {}; prepared in {}{}\n", summary.vocabulary_size, data::plural_of(summary.kind),
                  arguments.out, replaced ? ", in the place of the data set that was there" : "");
  std::fwrite(lines.data(), 1, lines.size(), stderr);
  if (!arguments.json) return;
  nlohmann::json object = json_of(summary);
  object.update({{"out", arguments.out}, {"replaced", replaced}});
  print_json(object);
}

}  // namespace

Command* add_prepare_command(Command& program) {
  Command* command = program.add_subcommand("prepare", "turn text files into a data folder for training");
  const auto arguments = std::make_shared<PrepareArguments>();
  arguments->add_to(*command);
  command->callback([arguments, command] { run_prepare(*arguments, *command); });
  return command;
}

}  // namespace engram
