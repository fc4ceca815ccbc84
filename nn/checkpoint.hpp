#pragma once
/// Checkpoints: named tensors and text in one safetensors file (core/files/safetensors.hpp). Model tensors stand under
/// their parameters' names, optimiser state under "optimizer/", caches under "state/". Saving replaces the whole file
/// or nothing; loading changes all wanted tensors or none.

#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/backend.hpp"
#include "core/communicator.hpp"
#include "core/division.hpp"
#include "core/files/safetensors.hpp"
#include "core/tensor.hpp"

namespace engram {

/// The tensor shares the memory of the original: loading into it changes that.
struct NamedTensor {
  std::string name;
  Tensor tensor;
  /// Of a tensor that ranks share, `tensor` is what this rank holds of it, of any shape, or none.
  std::optional<Division> division = {};

  const Shape& shape() const { return division ? division->shape : tensor.shape(); }
  DType dtype() const { return division ? division->dtype : tensor.dtype(); }
};

/// What numbers a file may hold: by default any.
struct NumberLimits {
  bool only_finite = false;
  /// Of tensors whose names have no '/', which are a model's parameters: the largest magnitude.
  double largest_parameter = std::numeric_limits<double>::infinity();
};

/// Writes the tensors, which live on `backend`'s device, and the metadata. The previous file stays until the new one is
/// complete and on the disk. Throws FileError when the file cannot be written (its folder must exist), Error for an
/// empty tensor or a name that is empty or given twice, DeviceError for a tensor of another device, NotFiniteError for
/// a number beyond the limits: the previous file stays then as well.
void save_checkpoint(const std::filesystem::path& path, Backend& backend, std::span<const NamedTensor> tensors,
                     const Metadata& metadata, const NumberLimits& limits = {});
/// The same with several ranks, which all call it with the same names: rank 0 writes the file that one rank would
/// write. What it throws, all throw with its message, as together() says: NotFiniteError all as that.
void save_checkpoint(const std::filesystem::path& path, Backend& backend, std::span<const NamedTensor> tensors,
                     const Metadata& metadata, const NumberLimits& limits, Communicator& ranks);

/// What load() lets pass beside an exact match. Prefixes are beginnings of names, such as "optimizer/".
struct LoadRules {
  /// Wanted tensors under such a prefix may be missing in the file, but only all of them together: a part of an
  /// optimiser's state is worse than none. They keep their values then; see CheckpointFile::has_group.
  std::vector<std::string> may_be_absent = {};
  /// Tensors of the file under such a prefix need not be wanted.
  std::vector<std::string> may_be_ignored = {};
  /// f32 may be read into f64, and f64, rounded to nearest, into f32 when all its finite values fit.
  bool convert_floats = false;
};

/// An open checkpoint, all of it checked.
class CheckpointFile {
 public:
  /// Throws FileError as SafetensorsFile does.
  explicit CheckpointFile(const std::filesystem::path& path) : file_(path) {}

  const std::filesystem::path& path() const { return file_.path(); }
  const Metadata& metadata() const { return file_.metadata(); }
  const std::string& checksum() const { return file_.checksum(); }
  bool has(std::string_view name) const { return file_.tensors().contains(name); }
  /// Whether any tensor's name begins with the prefix.
  bool has_group(std::string_view prefix) const;
  /// Sorted.
  std::vector<std::string> names() const;
  /// Throws FileError when the file has no such tensor.
  const StoredTensor& at(std::string_view name) const;
  /// The elements of a tensor of this file, not aligned: copy them.
  std::span<const std::byte> bytes(const StoredTensor& tensor) const { return file_.bytes(tensor); }

  /// Fills the wanted tensors, which live on `backend`'s device; of a tensor that ranks share, what rank number `rank`
  /// holds. Throws one FileError that lists every tensor that is missing, extra, or of another shape or dtype; nothing
  /// has been written into any tensor then. Throws Error and DeviceError as save_checkpoint does.
  void load(Backend& backend, std::span<const NamedTensor> wanted, const LoadRules& rules = {}, int rank = 0) const;

 private:
  std::vector<std::string> differences(std::span<const NamedTensor> wanted, const LoadRules& rules) const;

  SafetensorsFile file_;
};

/// The checkpoints of a run's folder: the newest one and the one with the best validation result.
enum class CheckpointKind : unsigned char { newest, best };

/// RUN_DIR/checkpoint/model.safetensors or RUN_DIR/best/model.safetensors, whether it exists or not.
std::filesystem::path checkpoint_path(const std::filesystem::path& run_dir, CheckpointKind kind);

/// The file that "RUN_DIR or CHECKPOINT" means: a file is itself, a folder with a model.safetensors that file, a run's
/// folder its checkpoint of this kind. `best` is content with the newest one while there is no best one yet; `newest`
/// never goes back to the best. Throws FileError saying what was looked for.
std::filesystem::path find_checkpoint(const std::filesystem::path& run_dir_or_file, CheckpointKind kind);

}  // namespace engram
