#pragma once
/// `engram gradients`: norms and clipping of every tensor's gradient, and what moves the spans.

#include "apps/command_line/command.hpp"

namespace engram {

/// Adds the subcommand with its options; parsing it runs it. Throws FileError for metrics that cannot be read, and for
/// a CSV file that cannot be written; UsageError for a run without gradient reports.
Command* add_gradients_command(Command& program);

}  // namespace engram
