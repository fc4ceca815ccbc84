#include <map>

#include "apps/command_line/completion.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

std::string spaced(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : " ") + word;
  return all;
}

/// What the script sets for a value: how it is offered, and the words themselves.
std::string setting_of(const OptionDescription& option) {
  switch (offer_of(option)) {
    case Offer::nothing:
      return "offer=nothing";
    case Offer::words:
      return text("offer=words words='", spaced(option.offered), "'");
    case Offer::files:
      return "offer=files";
    case Offer::folders:
      return "offer=folders";
    case Offer::configs:
      return "offer=configs";
    case Offer::keys:
      return "offer=keys";
    case Offer::commands:
      return "offer=commands";
  }
  return {};
}

/// The arm of a command: its options, those that several values follow, and what the value of `before` is, which is
/// empty where no option waits for one.
std::string arm_of(const CommandDescription& command) {
  std::string options, lists, arms;
  std::map<std::string, std::string> names_of;  // of what sets the same
  for (const OptionDescription& option : command.options) {
    options += (options.empty() ? "" : " ") + spaced(option.names);
    if (option.is_list) lists += (lists.empty() ? "" : " ") + spaced(option.names);
    if (option.value.empty()) continue;
    std::string& names = names_of[setting_of(option)];
    for (const std::string& name : option.names) names += (names.empty() ? "" : " | ") + name;
  }
  for (const auto& [setting, names] : names_of) arms += text("        ", names, ") ", setting, " ;;\n");
  const std::string otherwise = command.arguments.empty() ? "offer=options" : setting_of(command.arguments.front());
  return text("    ", command.name, ")\n      options='", options, "' lists='", lists,
              "'\n      case $(_engram_before \"$lists\") in\n", arms, "        =) ;;\n        *) ", otherwise,
              " ;;\n      esac\n      ;;\n");
}

// What does not depend on commands. In bash "=" parts words, and is one.
constexpr std::string_view kBeginning = R"(# Completion of engram in bash, written by `engram completion bash`.

# The option whose value is being typed: the word before it, or, of an option that several values follow ($1), one
# before those; "=" for what belongs to a key; nothing where no option waits for a value.
_engram_before() {
  local at=$((COMP_CWORD - 1))
  if [[ ${COMP_WORDS[COMP_CWORD]} != = && ${COMP_WORDS[at]} == = ]]; then ((at -= 1)); fi
  if [[ ${COMP_WORDS[at]} == -* ]]; then
    echo "${COMP_WORDS[at]}"
  elif [[ ${COMP_WORDS[COMP_CWORD]} == = || ${COMP_WORDS[COMP_CWORD - 1]} == = ]]; then
    echo =
  else
    while ((at > 1)) && [[ ${COMP_WORDS[at]} != -* ]]; do ((at -= 1)); done
    if ((at > 1)) && [[ " $1 " == *" ${COMP_WORDS[at]} "* ]]; then echo "${COMP_WORDS[at]}"; fi
  fi
}

_engram() {
  local IFS=$' \t\n' word=${COMP_WORDS[COMP_CWORD]} offer=nothing words='' options='' lists=''
)";
constexpr std::string_view kEnd = R"(    esac
  fi
  if [[ $word == -* && ${COMP_WORDS[COMP_CWORD - 1]} != = && $COMP_CWORD -gt 1 ]]; then offer=options; fi
  if [[ $word == = ]]; then word=''; fi
  COMPREPLY=()
  case $offer in
    options) mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word") ;;
    words) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word") ;;
    commands) mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$word") ;;
    keys)
      compopt -o nospace 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -S = -W "$keys" -- "$word")
      ;;
    folders)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -d -- "$word")
      ;;
    files)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$word")
      ;;
    configs)
      words=$("${COMP_WORDS[0]}" configs --names 2>/dev/null)
      # The last part of a name is enough to find it.
      if [[ -n $word && $word != */* ]]; then words+=$'\n'$(printf '%s\n' "$words" | sed 's|.*/||'); fi
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word"; compgen -f -- "$word")
      ;;
  esac
}
complete -F _engram engram
)";

}  // namespace

std::string bash_completion(const CommandDescription& program, const std::vector<std::string>& keys) {
  std::string commands, options, arms;
  for (const CommandDescription& command : program.commands) {
    commands += (commands.empty() ? "" : " ") + command.name;
    arms += arm_of(command);
  }
  for (const OptionDescription& option : program.options) options += " " + spaced(option.names);
  return text(kBeginning, "  local commands='", commands, "'\n  local keys='", spaced(keys),
              "'\n  if ((COMP_CWORD == 1)); then\n    offer=words words=\"$commands help", options,
              "\"\n  else\n    case ${COMP_WORDS[1]} in\n    help) offer=commands ;;\n", arms, kEnd);
}

}  // namespace engram
