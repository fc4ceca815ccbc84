#pragma once
/// `engram generate`: lets a trained model write on.

#include "apps/command_line/command.hpp"

namespace engram {

/// Adds the subcommand with its options; parsing it runs it. Throws UsageError for options out of range and a prompt
/// with a character that the model does not know, FileError for a checkpoint that cannot be used.
Command* add_generate_command(Command& program);

}  // namespace engram
