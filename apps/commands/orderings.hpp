#pragma once
/// `engram orderings`: whether the variants of a sweep came out in the order that claims say.

#include "apps/command_line/command.hpp"

namespace engram {

/// Adds the subcommand with its options; parsing it runs it. Throws UsageError as parse_claim() and judge() do,
/// FileError for a folder without sweep.csv, and with --strict Error unless all claims hold.
Command* add_orderings_command(Command& program);

}  // namespace engram
