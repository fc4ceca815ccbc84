#pragma once
/// A trained all-attention network, or a Transformer with adaptive spans, as a state dict of the released program
/// (docs/guide/released-weights.md).

#include <cstddef>
#include <filesystem>

#include "apps/run/weights/watched_sources.hpp"
#include "nn/checkpoint.hpp"

namespace engram {

struct AdaptiveSpanExport {
  std::filesystem::path run;  ///< or a checkpoint
  CheckpointKind kind = CheckpointKind::newest;
  std::filesystem::path out;  ///< safetensors
  WriteWatch watch = {};      ///< of the weights
};

/// Writes all tensors of the layout in the dtype of the checkpoint, tied copies and buffers too, in a folder that is
/// made if it is missing, and returns how many. Throws UsageError for a model of another family and for one that the
/// program cannot express, naming all options that it cannot; FileError for files that cannot be read or written.
std::size_t export_adaptive_span(const AdaptiveSpanExport& from);

}  // namespace engram
