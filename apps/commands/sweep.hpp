#pragma once
/// `engram sweep`: trains variants of a configuration for the same number of tokens and compares them.

#include <CLI/App.hpp>

namespace engram {

/// Adds the subcommand with its options; parsing it runs it. Throws what prepare_runs() and run_sweep() throw.
CLI::App* add_sweep_command(CLI::App& program);

}  // namespace engram
