#pragma once
/// Writes the files of a data folder so that all of them take their names together: whatever fails before, an older
/// data set in the folder stays as it was.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "apps/data/files/token_file.hpp"
#include "apps/data/vocabulary/vocabulary.hpp"
#include "core/files/durable_file.hpp"

namespace engram::data {

class FolderWriter {
 public:
  /// Makes the folder, or makes sure that nothing but an older data set is in it, and writes the vocabulary. Throws
  /// UsageError for an empty path, FileError for a folder that cannot be written or holds other files.
  FolderWriter(std::filesystem::path folder, const Vocabulary& vocabulary);

  /// Begins the token file of the next split, in the order of kSplitNames. Valid until the next call.
  TokenFileWriter& begin_split();
  /// Says where the articles of the split that was begun last start. All of its tokens must have been written. Throws
  /// as article_starts_bytes.
  void put_articles(std::span<const std::int64_t> starts);
  /// The files of the splits that were begun.
  const std::vector<TokenFileWriter>& splits() const { return splits_; }
  /// Writes data.json and names all files. Nothing may follow.
  void commit(std::string_view data_json);

 private:
  std::filesystem::path folder_;
  std::int64_t vocabulary_size_;
  std::uint64_t vocabulary_hash_;
  DurableFile vocabulary_file_;
  std::optional<DurableFile> model_file_;  // of subwords
  std::vector<TokenFileWriter> splits_;
  std::vector<DurableFile> article_files_;
};

}  // namespace engram::data
