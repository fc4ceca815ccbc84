#pragma once
/// `engram bench`: training steps of some configs against the limits of this machine.

#include <CLI/App.hpp>

namespace engram {

/// Adds the subcommand with its options; parsing it runs it. Throws UsageError for options and spans that do not fit
/// the configs, FileError for a config that cannot be read.
CLI::App* add_bench_command(CLI::App& program);

}  // namespace engram
