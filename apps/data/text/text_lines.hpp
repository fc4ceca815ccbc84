#pragma once
/// A text line by line, whatever its size: what is in memory is a line and a piece of 64 KiB. Lines end at "\n" or
/// "\r\n". Bytes that are no UTF-8 become U+FFFD, each of them one, and are counted; a byte order mark is left out.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "apps/data/files/hash.hpp"

namespace engram::data {

class TextLines {
 public:
  /// The most bytes that a line may have.
  static constexpr std::size_t kLongest = std::size_t{1} << 20;

  /// Throws FileError with the system's reason for a file that is missing, a folder, or cannot be read; so does next().
  explicit TextLines(std::filesystem::path path);
  ~TextLines();
  TextLines(const TextLines&) = delete;
  TextLines& operator=(const TextLines&) = delete;

  /// Puts the next line into `line`, without its end; false at the end of the file. Throws FileError naming file and
  /// line for one of more than kLongest bytes.
  bool next(std::string& line);

  /// The number of the line that next() gave last, from 1; 0 before the first.
  std::int64_t number() const { return number_; }
  const std::filesystem::path& path() const { return path_; }
  /// "line 12 of 'books.txt'": the line that next() gave last.
  std::string place() const;
  /// Bytes so far that became U+FFFD.
  std::int64_t replaced() const { return replaced_; }
  /// Bytes that were read so far, and their hash: of all of the file, once next() gave false.
  std::int64_t bytes() const { return bytes_; }
  std::uint64_t hash() const { return hash_.value(); }

 private:
  /// Reads another piece; false at the end of the file.
  bool read();
  void repair(std::string& line);

  std::filesystem::path path_;
  int descriptor_;
  std::string buffer_;
  std::size_t at_ = 0;  // in the buffer: where the next line begins
  std::int64_t number_ = 0, replaced_ = 0, bytes_ = 0;
  Fnv1a64 hash_;
};

}  // namespace engram::data
