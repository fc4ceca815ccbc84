#pragma once
/// `engram import`: weights of other programs as a checkpoint.

#include "apps/command_line/command.hpp"

namespace engram {

/// Adds the subcommand with its options; parsing it runs it. Throws as import_transfo_xl() does.
Command* add_import_command(Command& program);

}  // namespace engram
