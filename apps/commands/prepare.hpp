#pragma once
/// `engram prepare`: from text files to a data folder. The work is that of apps/data/prepare.hpp.

#include <CLI/App.hpp>

namespace engram {

/// Adds the subcommand with its options; parsing it runs it. Throws what data::prepare throws.
CLI::App* add_prepare_command(CLI::App& program);

}  // namespace engram
