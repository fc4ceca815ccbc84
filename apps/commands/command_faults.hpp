#pragma once
/// What is said of a command line that CLI11 refuses.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "apps/command_line/command.hpp"

namespace engram {

/// The fault of the `given` arguments in one message. Options that there are not are named first, with the nearest one
/// if it is near, or as the key of a configuration that they are, and with them what is missing: it may have been
/// misspelt. `command` is the parser's, or nullptr.
std::string command_fault(const CLI::App& parser, const Command* command, const CLI::ParseError& error,
                          const std::vector<std::string>& given);

}  // namespace engram
