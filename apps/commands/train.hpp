#pragma once
/// `engram train`: trains a model and keeps the run in a folder, from which it can go on.

#include <CLI/App.hpp>

namespace engram {

/// Adds the subcommand with its options; parsing it runs it. Throws as run_training (apps/training/training_run.hpp).
CLI::App* add_train_command(CLI::App& program);

}  // namespace engram
