#pragma once
/// The safetensors file format (https://github.com/huggingface/safetensors): eight bytes with the length n of the
/// header, lowest byte first; n bytes of JSON, {"name": {"dtype", "shape", "data_offsets"}, ..., "__metadata__":
/// {"key": "value"}}; then the data of all tensors, row-major, lowest byte first, without holes.
///
/// Engram adds a checksum to the metadata: "engram.checksum": "crc32:" and eight lower-case hexadecimal digits, the
/// CRC-32 (core/files/crc32.hpp) of the whole file in which these eight digits are replaced by zeros. A file without
/// the entry is accepted: other programs need not write it. One whose entry is wrong is not.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "core/files/stored_tensor.hpp"

namespace engram {

/// A source that reads shape.count() elements of host memory, which must stay until it is written.
TensorSource host_tensor(std::string name, DType dtype, Shape shape, const void* data);

/// Replaces the file as a whole (core/files/durable_file.hpp). The tensors are laid out by falling element size, then
/// by name, so that each is aligned. Throws FileError when it cannot be written, and Error for a name that is empty,
/// not UTF-8, given twice or "__metadata__", or a metadata key "engram.checksum"; the old file is untouched then.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorSource> tensors,
                       const Metadata& metadata);

/// Reads all tensors chunk by chunk, in the order in which write_safetensors() does: for ranks that take part in
/// reading what another one writes.
void read_in_file_order(std::span<const TensorSource> tensors,
                        const std::function<void(std::span<const std::byte> chunk)>& take);

/// A file mapped into memory, every statement of its header checked. Reading is undefined when another program
/// shortens the file meanwhile; one that replaces it, as write_safetensors does, is harmless.
class SafetensorsFile {
 public:
  /// Reads the whole file once. Throws FileError, naming file, tensor and facts, when the file cannot be read, is no
  /// regular file, is cut short or too long, has a header over 100 MB, not of the form above, with a name given twice,
  /// a dtype other than F32, F64, BF16, I32 and I64, a shape of over five axes, data that do not fit the shape, overlap
  /// or leave holes; or when its checksum is wrong.
  explicit SafetensorsFile(const std::filesystem::path& path, HalfFloats half_floats = HalfFloats::refused);

  const std::filesystem::path& path() const { return path_; }
  /// Without the checksum.
  const Metadata& metadata() const { return metadata_; }
  /// As it is written in the metadata, "crc32:" and eight digits; empty: the file has none.
  const std::string& checksum() const { return checksum_; }
  const std::map<std::string, StoredTensor, std::less<>>& tensors() const { return tensors_; }
  /// Names of the tensors that are F16 in the file and listed as bf16.
  const std::set<std::string, std::less<>>& half_floats() const { return half_floats_; }
  /// The elements of a tensor of this file. Not aligned when another program wrote the file: copy them.
  std::span<const std::byte> bytes(const StoredTensor& tensor) const;

 private:
  std::filesystem::path path_;
  std::shared_ptr<const std::byte> mapping_;
  std::size_t data_begin_ = 0;
  Metadata metadata_;
  std::string checksum_;
  std::map<std::string, StoredTensor, std::less<>> tensors_;
  std::set<std::string, std::less<>> half_floats_;
};

}  // namespace engram
