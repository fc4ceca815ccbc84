#pragma once
/// A trained Transformer-XL as weights and config.json of Hugging Face's TransfoXLLMHeadModel, or as a state dict of
/// the original PyTorch program (docs/guide/interop.md).

#include <filesystem>
#include <string>
#include <vector>

#include "apps/run/weights/transfo_xl_names.hpp"
#include "apps/run/weights/watched_sources.hpp"
#include "nn/checkpoint.hpp"

namespace engram {

struct TransfoXlExport {
  std::filesystem::path run;  ///< or a checkpoint
  CheckpointKind kind = CheckpointKind::newest;
  std::filesystem::path out;  ///< safetensors; config.json is written beside it
  /// model.KEY=VALUE of what the model remembers and sees: memory, memory_start, visibility, clamp.
  std::vector<std::string> settings{};
  TransfoXlProgram program = TransfoXlProgram::hugging_face;
  WriteWatch watch = {};  ///< of the weights
};

struct TransfoXlExported {
  std::filesystem::path config;  ///< the config.json
  std::size_t tensors = 0;       ///< tied copies and the frequencies among them
};

/// Writes all tensors of the layout in the dtype of the checkpoint, tied copies too, and replaces both files, in a
/// folder that is made if it is missing. The slots of clusters are in the order in which the program reads them,
/// natural or for the original one reversed: those of a model with the other order are turned
/// (transfo_xl_cluster_order.hpp). Throws UsageError for a model of another family, for one that the layout or its
/// class cannot express, naming all options that it cannot, and for other settings; FileError for files that cannot be
/// read or written.
TransfoXlExported export_transfo_xl(const TransfoXlExport& from);

}  // namespace engram
