#pragma once
/// `engram export`: a trained model as weights of other programs.

#include "apps/command_line/command.hpp"

namespace engram {

/// Adds the subcommand with its options; parsing it runs it. Throws as export_transfo_xl() does.
Command* add_export_command(Command& program);

}  // namespace engram
