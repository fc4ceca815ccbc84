#pragma once
/// A file of token ids: a header of 56 bytes, then the ids, everything little-endian.
///
///   offset  bytes  what
///        0      8  "ENGRAMTK"
///        8      4  version, 1
///       12      4  bytes per id: 1 for V <= 256, 2 for V <= 65536 (both unsigned), 4 (signed) above
///       16      8  V
///       24      8  number of ids
///       32      8  hash of the vocabulary
///       40      8  FNV-1a of the bytes of the ids
///       48      8  FNV-1a of the 48 bytes before
///
/// It is read by mapping: opening reads it through once to check it, later only the pages that are used are in memory.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "apps/data/files/hash.hpp"
#include "apps/data/files/token_view.hpp"
#include "core/files/durable_file.hpp"

namespace engram::data {

/// Bytes per id for a vocabulary of V entries.
constexpr int token_width(std::int64_t vocabulary_size) {
  return vocabulary_size <= 256 ? 1 : vocabulary_size <= 65536 ? 2 : 4;
}

/// Writes a token file in pieces, under a partial name until commit().
class TokenFileWriter {
 public:
  /// Throws UsageError unless V is from 1 to 2^31 - 1, FileError if the file cannot be created.
  TokenFileWriter(const std::filesystem::path& path, std::int64_t vocabulary_size, std::uint64_t vocabulary_hash);
  /// Throws UsageError with position and id for an id outside [0, V).
  void append(std::span<const std::int32_t> ids);
  /// Completes the header; everything is on the disk afterwards. No append() after it.
  void flush();
  /// flush(), then gives the file its name.
  void commit();

  std::int64_t count() const { return count_; }
  std::uint64_t content_hash() const { return content_.value(); }

 private:
  DurableFile file_;
  std::int64_t vocabulary_size_;
  std::uint64_t vocabulary_hash_;
  std::int64_t count_ = 0;
  Fnv1a64 content_;
  bool complete_ = false;
};

/// A mapped token file. The file may be replaced while it is open (the old contents stay mapped), never shortened.
class TokenFile {
 public:
  /// Opens and checks all of the file. Throws FileError saying which of the header's promises is broken, or position
  /// and value of the first id that is not below V.
  explicit TokenFile(const std::filesystem::path& path);
  ~TokenFile();
  TokenFile(TokenFile&& other) noexcept;
  TokenFile& operator=(TokenFile&&) = delete;

  TokenView tokens() const { return tokens_; }
  std::int64_t vocabulary_size() const { return vocabulary_size_; }
  std::uint64_t vocabulary_hash() const { return vocabulary_hash_; }
  std::uint64_t content_hash() const { return content_hash_; }

 private:
  void check(const std::filesystem::path& path, std::string_view bytes);

  void* mapping_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  TokenView tokens_;
  std::int64_t vocabulary_size_ = 0;
  std::uint64_t vocabulary_hash_ = 0;
  std::uint64_t content_hash_ = 0;
};

}  // namespace engram::data
