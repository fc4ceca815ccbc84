#pragma once
/// `engram evaluate`: how well a trained model predicts a split it has not seen.

#include "apps/command_line/command.hpp"

namespace engram {

/// Adds the subcommand with its options; parsing it runs it. Throws FileError for a checkpoint or data that cannot be
/// read or do not belong together, UsageError for options that exclude each other.
Command* add_evaluate_command(Command& program);

}  // namespace engram
