#pragma once
/// Reading a text of any size in pieces of whole lines, so that memory does not grow with the file. Lines end at "\n"
/// here; the few texts whose lines all end at a lone "\r" are one piece.

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

#include "apps/data/files/hash.hpp"

namespace engram::data {

class LinePieces {
 public:
  /// Pieces of about `piece_bytes`, larger where a line is. Throws FileError with the system's reason for a file that
  /// is missing, a folder, or cannot be read; so does next().
  explicit LinePieces(std::filesystem::path path, std::size_t piece_bytes = std::size_t{1} << 20);
  /// Pieces of `count` bytes from byte `first` on, or fewer where the file ends; first_byte() counts from there.
  LinePieces(std::filesystem::path path, std::int64_t first, std::int64_t count);
  ~LinePieces();
  LinePieces(const LinePieces&) = delete;
  LinePieces& operator=(const LinePieces&) = delete;

  /// Puts the next piece into `piece`; false, and an empty piece, at the end of the file.
  bool next(std::string& piece);
  /// Where the piece begins in the file.
  std::int64_t first_byte() const { return first_byte_; }
  /// Bytes so far, and their hash.
  std::int64_t bytes() const { return bytes_; }
  std::uint64_t hash() const { return hash_.value(); }

 private:
  std::filesystem::path path_;
  std::size_t piece_bytes_;
  int descriptor_;
  std::string rest_;  // read, but of a line that is not complete
  std::int64_t first_byte_ = 0, bytes_ = 0;
  std::int64_t most_ = std::numeric_limits<std::int64_t>::max();  // bytes to read
  Fnv1a64 hash_;
  bool at_end_ = false;
};

}  // namespace engram::data
