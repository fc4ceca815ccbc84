#pragma once
/// Files that PyTorch's torch.save wrote, and pickles without tensors. Two forms: since 1.6 a ZIP archive with the
/// pickle data.pkl and a member for each storage; before, a stream of pickles with the storages behind them. The file
/// is mapped: of tensors only what is read takes memory.

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "apps/run/weights/foreign_tensor.hpp"
#include "apps/run/weights/pytorch/pickle_machine.hpp"
#include "core/files/mapped_file.hpp"

namespace engram {

/// Whether a file begins as one of these forms, or as a pickle does.
bool begins_as_pytorch(std::span<const std::byte> file);

class PytorchFile {
 public:
  /// Throws FileError as map_file(), ZipArchive and read_pickle() do; for a storage that is missing, or is not as long
  /// as its pickle says; and for what was written on a machine with the highest byte first.
  explicit PytorchFile(const std::filesystem::path& path);
  /// Of bytes that were mapped already; `where` names them in messages.
  PytorchFile(MappedFile file, std::string where);
  PytorchFile(const PytorchFile&) = delete;
  PytorchFile& operator=(const PytorchFile&) = delete;

  const PickleNode& root() const { return *root_; }
  std::size_t values() const { return heap_.size(); }  ///< of all pickles together
  /// "'<path>'", for messages.
  const std::string& where() const { return where_; }

  /// `node`: a tensor of root(). Valid as long as the file. Throws FileError, naming it as `name`, for more than five
  /// axes, a place outside of its storage, and more elements than the storage has numbers.
  ForeignTensor tensor(const PickleNode& node, std::string_view name) const;

 private:
  void read_archive();
  void read_stream(ByteReader& reader);
  std::span<const std::byte> storage(const PickleNode& storage) const;

  std::string where_;
  MappedFile file_;
  PickleHeap heap_;
  PickleStorages named_;
  std::map<std::string_view, std::span<const std::byte>> storages_;
  const PickleNode* root_ = nullptr;
};

}  // namespace engram
