#pragma once
/// `engram count`: parameters, memory and arithmetic of a config's model, without allocating it.

#include "apps/command_line/command.hpp"

namespace engram {

/// Adds the subcommand with its options; parsing it runs it. Throws UsageError for a config that is not valid or has no
/// vocabulary, FileError for one that cannot be read.
Command* add_count_command(Command& program);

}  // namespace engram
