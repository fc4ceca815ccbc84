#pragma once
/// Weights of Hugging Face's TransfoXLLMHeadModel as a checkpoint of Engram (docs/interop.md).

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/dtype.hpp"
#include "nn/models/transformer_xl_options.hpp"

namespace engram {

struct TransfoXlImport {
  std::filesystem::path weights;        ///< safetensors
  std::filesystem::path out;            ///< the checkpoint
  std::filesystem::path config = {};    ///< config.json; empty: the one beside the weights, if there is one
  std::vector<std::string> settings{};  ///< KEY=VALUE of config.json, over the file's
  /// A data folder, whose vocabulary it becomes, or a text file with a token on every line; empty: tokens <0>, <1>, ...
  std::filesystem::path vocabulary = {};
};

struct TransfoXlImported {
  TransformerXlOptions options;
  DType dtype = DType::f32;  ///< of the checkpoint: f64 where a tensor of the weights is, else f32
  std::size_t tensors = 0;   ///< that were read, tied copies among them
  std::string configured;    ///< where the options are from, for people
};

/// Writes the checkpoint, or throws and leaves `out` as it was. Throws UsageError as read_transfo_xl_config() does and
/// for a vocabulary of another size; FileError for files that cannot be read or written, and one FileError that lists
/// every tensor that is missing, unknown, of another shape, of integers, or a tied copy that differs from its source.
TransfoXlImported import_transfo_xl(const TransfoXlImport& from);

}  // namespace engram
