#pragma once
/// `engram memory`: how the product-key memories of a trained model use their slots.

#include "apps/command_line/command.hpp"

namespace engram {

/// Adds the subcommand with its options; parsing it runs it. Throws UsageError for a model without memories and for a
/// split that is too short, FileError for a checkpoint or data that cannot be read or do not belong together, and for a
/// file that cannot be written.
Command* add_memory_command(Command& program);

}  // namespace engram
