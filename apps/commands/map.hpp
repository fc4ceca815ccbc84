#pragma once
/// `engram map`: a run folder whose tables evaluation reads from mapped files.

#include "apps/command_line/command.hpp"

namespace engram {

/// Adds the subcommand with its options; parsing it runs it. Throws UsageError for options that exclude each other, a
/// model without tables and a folder with a run in it, FileError for what cannot be read or written.
Command* add_map_command(Command& program);

}  // namespace engram
