#include "apps/commands/commands.hpp"

#include <fmt/format.h>

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
#include "core/log.hpp"

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

  if (command.count("--rule") > 0)
    log(LogLevel::warning, text("--rule is called --characters now (--characters ", arguments.old_rule,
                                "); --rules is another option, of whole published preparations"));
  if (arguments.json) {
    nlohmann::json object = json_of(summary);
    object.update({{"out", arguments.out}, {"replaced", replaced}});
    print_json(object);
    return;
  }
  std::string lines = table_of(summary);
  for (const std::string& note : summary.notes) lines += "note: " + note + "\n";
  lines +=
      fmt::format("vocabulary of {} {}; prepared in {}{}\n", summary.vocabulary_size, data::plural_of(summary.kind),
                  arguments.out, replaced ? ", in the place of the data set that was there" : "");
  print_report(lines);
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
