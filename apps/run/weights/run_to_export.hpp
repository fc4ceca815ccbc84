#pragma once
/// What every export of weights looks at before it writes.

#include <filesystem>
#include <string>

#include "apps/run/model/checkpoint_format.hpp"
#include "nn/checkpoint.hpp"
#include "nn/models/model_options.hpp"

namespace engram {

struct RunToExport {
  CheckpointFacts facts;
  std::string file;  ///< the checkpoint's path, in quotes
};
/// Of the run's checkpoint of this kind, or of a checkpoint alone. Throws UsageError where `out` is that file and where
/// the model is of another family, FileError where it cannot be read.
RunToExport read_run_to_export(const std::filesystem::path& run, CheckpointKind kind, const std::filesystem::path& out,
                               ModelFamily family);

}  // namespace engram
