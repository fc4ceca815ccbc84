#pragma once
/// `engram spans`: how far each head of a trained model looks back.

#include "apps/command_line/command.hpp"

namespace engram {

/// Adds the subcommand with its options; parsing it runs it. Throws FileError for a checkpoint or metrics that cannot
/// be read, and for a CSV file that cannot be written.
Command* add_spans_command(Command& program);

}  // namespace engram
