#pragma once
/// Weights of the released program of adaptive spans and persistent memory as a checkpoint of Engram
/// (docs/guide/interop.md).

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/run/weights/watched_sources.hpp"
#include "core/dtype.hpp"
#include "nn/models/all_attention_options.hpp"

namespace engram {

struct AdaptiveSpanImport {
  std::filesystem::path weights;  ///< of PyTorch, or safetensors with the same names
  std::filesystem::path out;      ///< the checkpoint
  /// KEY=VALUE, keys being options of that program that no tensor tells: adapt_span_ramp [32], block_size, dropout,
  /// emb_dropout. They may be spelt as on its command line: adapt-span-ramp, block-sz.
  std::vector<std::string> settings{};
  std::filesystem::path vocabulary = {};  ///< as read_import_vocabulary() has it
  WriteWatch watch = {};                  ///< of the checkpoint
};

struct AdaptiveSpanImported {
  AllAttentionOptions options;
  DType dtype = DType::f32;             ///< of the checkpoint: f64 where a tensor of the weights is, else f32
  std::size_t tensors = 0;              ///< that were read, tied copies among them
  std::string symbols{};                ///< of its vocabulary, as symbols_text() has it
  std::vector<std::string> warnings{};  ///< config_warnings() of the model
};

/// Writes the checkpoint, in a folder that is made if it is missing, or throws and leaves `out` as it was. Throws
/// UsageError for settings that are none, tensors that look like another program's, a vocabulary of another size and a
/// checkpoint of Engram's own; FileError for files that cannot be read or written, for sizes that no tensor tells, and
/// as require_layout() does.
AdaptiveSpanImported import_adaptive_span(const AdaptiveSpanImport& from);

}  // namespace engram
