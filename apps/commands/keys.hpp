#pragma once
/// `engram keys`: every key of a configuration, with its default and its meaning.

#include <CLI/App.hpp>

namespace engram {

/// Adds the subcommand with its options; parsing it runs it. Throws UsageError for a family that does not exist.
CLI::App* add_keys_command(CLI::App& program);

}  // namespace engram
