#include "apps/command_line/completion.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

std::string fish_quoted(std::string_view written) {
  std::string quoted = "'";
  for (const char byte : written) quoted += (byte == '\'' || byte == '\\' ? "\\" : "") + std::string(1, byte);
  return quoted + "'";
}

/// The words of fish's complete that say what a value may be.
std::string fish_offer(const OptionDescription& option) {
  std::string words;
  switch (offer_of(option)) {
    case Offer::nothing:
      return " -x";
    case Offer::words:
      for (const std::string& word : option.offered) words += (words.empty() ? "" : " ") + word;
      return " -x -a " + fish_quoted(words);
    case Offer::files:
      return " -r -F";
    case Offer::folders:
      return " -x -a '(__fish_complete_directories)'";
    case Offer::configs:
      return " -r -F -a '(engram configs --names; engram configs --names | string replace -r \".*/\" \"\")'";
    case Offer::keys:
      return " -x -a \"$engram_keys\"";
    case Offer::commands:
      return " -x -a \"$engram_commands\"";
  }
  return {};
}

}  // namespace

std::string fish_completion(const CommandDescription& program, const std::vector<std::string>& keys) {
  std::string commands, all_keys, rest;
  for (const CommandDescription& command : program.commands) {
    commands += (commands.empty() ? "" : " ") + command.name;
    rest += text("complete -c engram -n __fish_use_subcommand -f -a ", command.name, " -d ",
                 fish_quoted(command.summary), "\n");
    const std::string start = text("complete -c engram -n '__fish_seen_subcommand_from ", command.name, "'");
    if (command.arguments.empty()) rest += start + " -f\n";
    for (const OptionDescription& argument : command.arguments) {
      const std::string offer = fish_offer(argument);
      rest += start + (offer.starts_with(" -r") ? " -F" + offer.substr(6) : " -f" + offer.substr(3)) + "\n";
    }
    for (const OptionDescription& option : command.options) {
      rest += start;
      for (const std::string& name : option.names)
        rest += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      rest += (option.value.empty() ? " -f" : fish_offer(option)) + " -d " +
              fish_quoted(short_meaning(option.meaning)) + "\n";
    }
  }
  for (const std::string& key : keys) all_keys += (all_keys.empty() ? "" : " ") + key + "=";
  return text("# Completion of engram in fish, written by `engram completion fish`.\n\nset -g engram_commands '",
              commands, "'\nset -g engram_keys '", all_keys,
              "'\ncomplete -c engram -n __fish_use_subcommand -f -a help -d 'print the help of a command'\n"
              "complete -c engram -n __fish_use_subcommand -f -l help -d 'print the help'\n"
              "complete -c engram -n __fish_use_subcommand -f -l version -d 'print the version'\n"
              "complete -c engram -n '__fish_seen_subcommand_from help' -f -a \"$engram_commands\"\n",
              rest);
}

}  // namespace engram
