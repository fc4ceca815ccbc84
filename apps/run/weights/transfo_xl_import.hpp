#pragma once
/// Weights of Hugging Face's TransfoXLLMHeadModel as a checkpoint of Engram (docs/guide/interop.md).

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/run/weights/transfo_xl_cluster_order.hpp"
#include "apps/run/weights/watched_sources.hpp"
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
  /// Of the clusters' slots in the file; none: by what tells it (transfo_xl_cluster_order.hpp).
  std::optional<ClusterOrder> cluster_order = {};
  /// A data folder of the model's vocabulary, which it becomes where none is given: the order is then the one under
  /// which the first tokens of the split have the smaller loss. Empty: none.
  std::filesystem::path data = {};
  std::string split = "valid";
  WriteWatch watch = {};  ///< of the checkpoint
};

struct TransfoXlImported {
  TransformerXlOptions options;
  DType dtype = DType::f32;  ///< of the checkpoint: f64 where a tensor of the weights is, else f32
  std::size_t tensors = 0;   ///< that were read, tied copies among them
  std::string symbols{};     ///< of its vocabulary, as symbols_text() has it
  std::string configured;    ///< where the options are from, for people
  /// Of the file; the checkpoint's is natural, its rows turned where the file's was not.
  ClusterOrderFound cluster_order{};
};

/// Writes the checkpoint, in a folder that is made if it is missing, or throws and leaves `out` as it was. The names
/// may also be those of the original PyTorch program, which are the layout's without "transformer."; such a model
/// begins with an empty memory. Throws UsageError as read_transfo_xl_config() does, for a vocabulary of another size,
/// for data of another vocabulary or with an order given, and for a checkpoint of Engram's own; FileError for files
/// that cannot be read or written, and one FileError that lists every tensor that is missing, unknown, of another
/// shape, of integers, or a tied copy that differs from its source.
TransfoXlImported import_transfo_xl(const TransfoXlImport& from);

}  // namespace engram
