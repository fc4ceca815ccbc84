#pragma once
/// The pages of the reference that the program writes of itself: docs/reference/commands.md and keys.md.

#include <string>

namespace engram::harness {

/// Every command with what its help prints, and where more is said of it.
std::string commands_page();

/// Every key of every family: default, values, meaning.
std::string keys_page();

/// Where a command is explained, from docs/reference/: "prepare.md", "studies.md#sweep". Throws std::out_of_range for a
/// command that has no page.
std::string page_of_command(const std::string& command);

}  // namespace engram::harness
