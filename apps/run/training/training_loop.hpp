#pragma once
/// The loop of a run: steps, reports, short validations, checkpoints, and how it ends.

#include <filesystem>
#include <functional>
#include <string>

#include "apps/run/training/session.hpp"

namespace engram {

/// Trains up to the last configured step and saves. Throws Interrupted when `stop` said so (after saving), Diverged
/// when the loss is not finite or stays far above its best (the last good checkpoint is kept), FileError when something
/// cannot be written. `run`: which of several runs it is, for its progress, "2/8" or empty.
void train_to_the_end(TrainingSession& session, const std::filesystem::path& run_dir, bool resumed,
                      const std::function<bool()>& stop, const std::string& run = {});

}  // namespace engram
