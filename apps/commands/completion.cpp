#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "apps/command_line/completion.hpp"
#include "apps/commands/commands.hpp"
#include "apps/commands/output.hpp"
#include "apps/run/config/config_keys.hpp"

namespace engram {
namespace {

/// Those of all families, each once, in their order.
std::vector<std::string> names_of_keys() {
  std::vector<std::string> names;
  for (const ModelFamily family : kModelFamilies)
    for (const ConfigKey& key : config_keys(family))
      if (std::ranges::find(names, key.full_name()) == names.end()) names.push_back(key.full_name());
  return names;
}

std::string script_for(const std::string& shell, const CommandDescription& program) {
  if (shell == "bash") return bash_completion(program, names_of_keys());
  if (shell == "zsh") return zsh_completion(program, names_of_keys());
  return fish_completion(program, names_of_keys());
}

}  // namespace

Command* add_completion_command(Command& program) {
  Command* command = program.add_subcommand("completion", "print what lets a shell complete commands and options");
  const auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "bash, zsh or fish")->one_of({"bash", "zsh", "fish"})->required();
  command->footer(
      "Installed packages have it in place. For the shell that runs, bash or zsh: source <(engram completion bash); in "
      "fish: engram completion fish | source.");
  command->callback([shell, &program] { print(script_for(*shell, program.describe())); });
  return command;
}

}  // namespace engram
