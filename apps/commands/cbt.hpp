#pragma once
/// `engram cbt`: answers the questions of the Children's Book Test with a trained recurrent model.

#include "apps/command_line/command.hpp"

namespace engram {

/// Adds the subcommand with its options; parsing it runs it. Throws UsageError for a model of another family and data
/// that know no articles, FileError for a checkpoint, data or questions that cannot be read or do not belong together.
Command* add_cbt_command(Command& program);

}  // namespace engram
