#pragma once
/// `engram export`: a trained model as weights of other programs.

#include <CLI/App.hpp>

namespace engram {

/// Adds the subcommand with its options; parsing it runs it. Throws as export_transfo_xl() does.
CLI::App* add_export_command(CLI::App& program);

}  // namespace engram
