#pragma once
/// A text of any size and its three splits, read piece by piece as often as is needed: what is in memory is a piece of
/// about a megabyte, or a line, where one is longer. Lines end at "\n". One text is cut at line ends.

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include "apps/data/files/prepare_watch.hpp"
#include "apps/data/text/corpus.hpp"

namespace engram::data {

/// What a split has of a file.
struct StreamedPart {
  std::size_t source = 0;       ///< index in StreamedText::sources()
  std::int64_t first_byte = 0;  ///< where it begins in its source
  std::int64_t bytes = 0;
  std::uint64_t hash = 0;  ///< of its bytes
};

struct StreamedSplit {
  std::vector<StreamedPart> parts;  ///< at least one
  std::int64_t bytes = 0;
  std::int64_t words = 0;    ///< between white space (line_words.hpp)
  bool end_missing = false;  ///< the last line of a part has no line end
};

/// A file as it was when it was first read.
struct StreamedSource {
  std::filesystem::path path;
  std::int64_t bytes = 0;
  std::uint64_t hash = 0;
  bool signed_utf8 = false;  ///< it begins with a byte order mark, which is part of the text
};

class StreamedText {
 public:
  /// Reads one file, cut by the percentages, each cut moved on to the next line start. Throws UsageError for
  /// percentages that are wrong; FileError for a file that cannot be read twice (a pipe), an empty one, one that is not
  /// UTF-8 (naming byte and line), and a split without a byte.
  StreamedText(const std::filesystem::path& text, const Percentages& percentages, const PrepareWatch& watch = {});
  /// Reads each split from files of its own, one after the other: those of train, valid, test. Throws as the other.
  explicit StreamedText(const std::array<std::vector<std::filesystem::path>, 3>& files, const PrepareWatch& watch = {});

  const std::vector<StreamedSource>& sources() const { return sources_; }
  const std::array<StreamedSplit, 3>& splits() const { return splits_; }  ///< in the order of kSplitNames

  /// Calls `visit` with the lines of a split in their order, without their ends; a line end that ends a file begins no
  /// other line. Throws FileError for a file that has changed since it was read first.
  void read_lines(std::size_t split, const std::function<void(std::string_view line)>& visit,
                  const ByteWatch& watch = {}) const;

 private:
  /// Reads a file through; its splits are those from `first` on, which end where `ends` says.
  void add_file(const std::filesystem::path& path, std::size_t first, std::vector<std::int64_t> ends,
                const PrepareWatch& watch);
  void require_bytes() const;
  void read_part(const StreamedPart& part, std::size_t split, const std::function<void(std::string_view line)>& visit,
                 const ByteWatch& watch) const;

  std::vector<StreamedSource> sources_;
  std::array<StreamedSplit, 3> splits_;
};

}  // namespace engram::data
