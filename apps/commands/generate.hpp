#pragma once
/// `engram generate`: lets a trained model write on.

#include <CLI/App.hpp>

namespace engram {

/// Adds the subcommand with its options; parsing it runs it. Throws UsageError for options out of range and a prompt
/// with a character that the model does not know, FileError for a checkpoint that cannot be used.
CLI::App* add_generate_command(CLI::App& program);

}  // namespace engram
