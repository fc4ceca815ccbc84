#pragma once

#include "apps/command_line/command.hpp"

namespace engram {

/// Adds all commands of the program, in the groups that its help shows, and the end of that help.
void add_all_commands(Command& program);

}  // namespace engram
