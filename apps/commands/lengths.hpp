#pragma once
/// `engram lengths`: how well runs predict with other attention lengths than in training.

#include "apps/command_line/command.hpp"

namespace engram {

/// Adds the subcommand with its options; parsing it runs it. Throws FileError for checkpoints or data that cannot be
/// read or do not belong together, and for a file that cannot be written.
Command* add_lengths_command(Command& program);

}  // namespace engram
