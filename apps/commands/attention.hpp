#pragma once
/// `engram attention`: where a trained model looks while it reads a text.

#include "apps/command_line/command.hpp"

namespace engram {

/// Adds the subcommand with its options; parsing it runs it. Throws UsageError for a layer or head that the model does
/// not have and a text that it cannot read, FileError for files that cannot be read or written.
Command* add_attention_command(Command& program);

}  // namespace engram
