#pragma once
/// `engram prepare`: from text files to a data folder. The work is that of apps/data/prepare/options.hpp.

#include "apps/command_line/command.hpp"

namespace engram {

/// Adds the subcommand with its options; parsing it runs it. Throws what data::prepare throws.
Command* add_prepare_command(Command& program);

}  // namespace engram
