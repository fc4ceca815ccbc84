#pragma once
/// `engram bench`: training steps of some configs against the limits of this machine.

#include "apps/command_line/command.hpp"

namespace engram {

/// Adds the subcommand with its options; parsing it runs it. Throws UsageError for options and spans that do not fit
/// the configs, FileError for a config that cannot be read.
Command* add_bench_command(Command& program);

}  // namespace engram
