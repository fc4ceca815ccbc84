#pragma once
/// A trained model's weights as a start for another one: a checkpoint, of which nothing is computed.

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/run/model/checkpoint_format.hpp"
#include "nn/checkpoint.hpp"

namespace engram {

class WeightSource {
 public:
  /// `run_or_checkpoint` as find_checkpoint() takes it; of a run the newest. Throws FileError when it cannot be read,
  /// and UsageError when its tables are in mapped files.
  explicit WeightSource(const std::filesystem::path& run_or_checkpoint);

  const std::filesystem::path& path() const { return file_.path(); }  ///< the file
  const CheckpointFacts& facts() const { return facts_; }
  /// Whether Engram trained it: its configuration then says how, else it has placeholders there.
  bool was_trained() const;
  /// Whether its weights are means over updates, as evaluation would have them.
  bool averaged() const { return averaged_; }
  /// What tells it from other files: the checksum of the file, or of one without it a hash of its tensors.
  std::string identity() const;

  /// Names of parameters and of what models keep beside them, sorted.
  std::vector<std::string> names() const;
  struct Weight {
    DType dtype;
    Shape shape;
    std::span<const std::byte> bytes;  ///< not aligned
  };
  /// Nothing where the model has none of that name. The mean, where there is one.
  std::optional<Weight> find(const std::string& name) const;

 private:
  CheckpointFile file_;
  CheckpointFacts facts_;
  bool averaged_, has_means_;
};

}  // namespace engram
