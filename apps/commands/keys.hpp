#pragma once
/// `engram keys`: every key of a configuration, with its default and its meaning.

#include "apps/command_line/command.hpp"

namespace engram {

/// Adds the subcommand with its options; parsing it runs it. Throws UsageError for a family that does not exist.
Command* add_keys_command(Command& program);

}  // namespace engram
