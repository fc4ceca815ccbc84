#pragma once
/// `engram import`: weights of other programs as a checkpoint.

#include <CLI/App.hpp>

namespace engram {

/// Adds the subcommand with its options; parsing it runs it. Throws as import_transfo_xl() does.
CLI::App* add_import_command(CLI::App& program);

}  // namespace engram
