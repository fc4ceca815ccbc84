#pragma once
/// Trained runs that a study of context compares on the same tokens.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "apps/data/data_set.hpp"
#include "apps/run/model/trained_model.hpp"
#include "nn/models/transformer_xl.hpp"

namespace engram {

struct StudiedRun {
  std::string name;                  ///< the last part of the path, or all of it where another run ends alike
  std::filesystem::path checkpoint;  ///< the file
  std::int64_t step = 0;             ///< that it was trained to
  RunConfig config;

  bool is_transformer_xl() const { return config.model.family == ModelFamily::transformer_xl; }
  /// Whether its layers remember what came before a segment.
  bool remembers() const;
  /// The attention length of training ([transformer-xl 6.5]): the memory of a model that has
  /// one, else the window, block and extension together. Of models of family transformer_xl.
  std::int64_t training_length() const;
};

/// Reads what the checkpoints say about themselves, before anything is computed. `runs`: folders or checkpoints. Throws
/// FileError for one that cannot be read or has another vocabulary than the data, so that all are of the same tokens,
/// and UsageError naming the `command` for the same one twice.
std::vector<StudiedRun> open_studied_runs(const std::vector<std::string>& runs, CheckpointKind kind,
                                          const data::DataSet& data, std::string_view command);

/// The model of a run of family transformer_xl; throws Error for another.
TransformerXlModel& transformer_xl_of(TrainedModel& trained);

}  // namespace engram
