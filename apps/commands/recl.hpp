#pragma once
/// `engram recl`: relative effective context length of the runs of a group.

#include "apps/command_line/command.hpp"

namespace engram {

/// Adds the subcommand with its options; parsing it runs it. Throws FileError for checkpoints or data that cannot be
/// read or do not belong together, and for a file that cannot be written.
Command* add_recl_command(Command& program);

}  // namespace engram
