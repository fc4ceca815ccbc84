#pragma once
/// `engram train`: trains a model and keeps the run in a folder, from which it can go on.

#include "apps/command_line/command.hpp"

namespace engram {

/// Adds the subcommand with its options; parsing it runs it. Throws as run_training (apps/run/training/training_run.hpp).
Command* add_train_command(Command& program);

}  // namespace engram
