#include "apps/command_line/completion.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

/// Inside of single quotes, where brackets and colons part what _arguments reads.
std::string zsh_text(std::string_view written) {
  std::string quoted;
  for (const char byte : written) {
    if (byte == '\'')
      quoted += "'\\''";
    else
      quoted += (byte == '[' || byte == ']' || byte == ':' || byte == '\\' ? "\\" : "") + std::string(1, byte);
  }
  return quoted;
}

/// What completes a value, behind its name: "FILE:_files".
std::string zsh_action(const OptionDescription& option) {
  const auto action = [&]() -> std::string {
    switch (offer_of(option)) {
      case Offer::nothing:
        return " ";
      case Offer::words: {
        std::string words;
        for (const std::string& word : option.offered) words += (words.empty() ? "" : " ") + zsh_text(word);
        return "(" + words + ")";
      }
      case Offer::files:
        return "_files";
      case Offer::folders:
        return "_files -/";
      case Offer::configs:
        return "_engram_configs";
      case Offer::keys:
        return "_engram_keys";
      case Offer::commands:
        return "_engram_commands";
    }
    return {};
  };
  return zsh_text(option.value) + ":" + action();
}

std::string zsh_options(const CommandDescription& command) {
  std::string all;
  for (const OptionDescription& option : command.options)
    for (const std::string& name : option.names)
      all +=
          text(" \\\n        '", option.is_list ? "*" : "", name,
               option.value.empty() || !name.starts_with("--") ? "" : "=", "[", zsh_text(short_meaning(option.meaning)),
               "]", option.value.empty() ? "" : (option.value.starts_with('[') ? "::" : ":") + zsh_action(option), "'");
  for (const OptionDescription& argument : command.arguments)
    all += text(" \\\n        '*:", zsh_action(argument), "'");
  return all;
}

}  // namespace

std::string zsh_completion(const CommandDescription& program, const std::vector<std::string>& keys) {
  std::string commands, arms, all_keys;
  for (const CommandDescription& command : program.commands) {
    commands += text("    '", command.name, ":", zsh_text(command.summary), "'\n");
    arms += text("    ", command.name, ")\n      _arguments", zsh_options(command), "\n      ;;\n");
  }
  for (const std::string& key : keys) all_keys += (all_keys.empty() ? "" : " ") + key;
  return text("#compdef engram\n# Completion of engram in zsh, written by `engram completion zsh`.\n\n",
              "_engram_commands() {\n  local -a commands=(\n", commands,
              "    'help:print the help of a command'\n  )\n  _describe command commands\n}\n\n"
              "_engram_keys() {\n  compadd -S = -- ",
              all_keys,
              "\n}\n\n"
              "_engram_configs() {\n  local -a names=(${(f)\"$(engram configs --names 2>/dev/null)\"})\n"
              "  names+=(${names##*/})\n  compadd -a names\n  _files\n}\n\n"
              "_engram() {\n  local context state line\n  typeset -A opt_args\n"
              "  _arguments -C '--help[print the help]' '--version[print the version]' '1:command:_engram_commands' "
              "'*::argument:->argument'\n  [[ $state == argument ]] || return\n  case $words[1] in\n    help) "
              "_engram_commands ;;\n",
              arms,
              "  esac\n}\n\n"
              "# Read by source it says whom it is for; from the folder of completions it is what is called.\n"
              "if [[ $funcstack[1] == _engram ]]; then _engram \"$@\"; else compdef _engram engram; fi\n");
}

}  // namespace engram
