#pragma once
/// `engram sweep`: trains variants of a configuration for the same number of tokens and compares them.

#include "apps/command_line/command.hpp"

namespace engram {

/// Adds the subcommand with its options; parsing it runs it. Throws what prepare_runs() and run_sweep() throw.
Command* add_sweep_command(Command& program);

}  // namespace engram
