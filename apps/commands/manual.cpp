#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/command_line/manual_page.hpp"
#include "apps/commands/commands.hpp"
#include "apps/commands/output.hpp"
#include "apps/run/folder/build_facts.hpp"
#include "core/error.hpp"
#include "core/files/durable_file.hpp"

namespace engram {
namespace {

struct ManualArguments {
  std::string command, out;
};

std::vector<ManualSection> sections() {
  return {
      {"FILES",
       {{"../share/engram/configs", "from the folder of the program: the configurations that engram configs lists"},
        {"../share/engram/fetch.sh", "from there too: downloads published data sets, checks and prepares them"},
        {"../share/engram/dictionary.sh", "from there too: makes data sets of a free dictionary of 31.7 MB"},
        {"../share/doc/engram", "from there too: the pages docs/... that messages and the help name"}}},
      {"ENVIRONMENT",
       {{"COLUMNS", "width of what is printed, where that is no terminal"},
        {"OMP_NUM_THREADS", "threads, where --threads is 0"},
        {"ENGRAM_CPU", "kernels of a portable program: avx512, avx2 or baseline, in place of the best that run here"},
        {"ENGRAM_RANK_TIMEOUT", "how long several processes wait for each other, in seconds"}}},
      {"EXIT STATUS",
       {{"0", "done"}, {"1", "failed"}, {"2", "wrong usage"}, {"130", "interrupted, after what was done was saved"}}}};
}

/// Each page in a file of its own, as man looks for it.
void write_all(const CommandDescription& program, const std::string& version, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  write_durably(folder / (program.name + ".1"), manual_page(program, version, sections()));
  for (const CommandDescription& command : program.commands)
    write_durably(folder / text(program.name, "-", command.name, ".1"), manual_page(program, command, version));
}

void run_manual(const ManualArguments& arguments, const CommandDescription& program) {
  const std::string version(build_facts().version);
  if (!arguments.out.empty()) return write_all(program, version, arguments.out);
  if (arguments.command.empty()) return print(manual_page(program, version, sections()));
  std::string names;
  for (const CommandDescription& command : program.commands) {
    if (command.name == arguments.command) return print(manual_page(program, command, version));
    names += (names.empty() ? "" : ", ") + command.name;
  }
  throw UsageError(text("manual: a command must be one of ", names, ", got '", arguments.command, "'"));
}

}  // namespace

Command* add_manual_command(Command& program) {
  Command* command = program.add_subcommand("manual", "print the page of a command for man");
  const auto arguments = std::make_shared<ManualArguments>();
  Option* name = command->add_option("command", arguments->command, "which one [the program's own page]");
  command->add_option("--out", arguments->out, "write the pages of all commands into this folder")->excludes(name);
  command->footer("Installed packages have them in place: man engram-train. Else: engram manual train | man -l -");
  command->callback([arguments, &program] { run_manual(*arguments, program.describe()); });
  return command;
}

}  // namespace engram
