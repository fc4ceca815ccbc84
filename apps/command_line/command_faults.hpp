#pragma once
/// What is said of a command line that CLI11 refuses.

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace engram {

/// What a command knows of arguments that it does not take. As made, what there is to say without a command.
struct CommandHints {
  using Arguments = std::vector<std::string>;
  bool takes_keys = false;  ///< of a configuration, by --set
  /// The fault of one that is left over of all that are given, or nothing.
  std::function<std::string(const Arguments& given, const std::string& argument)> refused_word =
      [](const Arguments&, const std::string&) { return std::string(); };
  /// What the command takes beside options, to be put behind a fault, or nothing.
  std::function<std::string(const Arguments& given)> values_hint = [](const Arguments&) { return std::string(); };
};

/// The fault of the `given` arguments in one message. Options that there are not are named first, with the nearest one
/// if it is near, or as the key of a configuration that they are, and with them what is missing: it may have been
/// misspelt. `hints` are those of the command that `parser` parses.
std::string command_fault(const CLI::App& parser, const CommandHints& hints, const CLI::ParseError& error,
                          const std::vector<std::string>& given);

}  // namespace engram
