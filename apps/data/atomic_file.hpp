#pragma once
/// Writing a file so that its path holds either the whole old or the whole new contents, whatever happens: the bytes
/// go to `<path>.partial` in the same folder, are flushed to the disk, and only then renamed over the path. A process
/// that is killed may leave the `.partial` behind; the next writer of the path overwrites it.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace engram::data {

/// Several files can be made to change together, nearly: flush() all of them, then commit() all of them. Everything
/// that is likely to fail (space, permission) fails in flush(), before any of them has replaced its predecessor.
/// All functions throw FileError naming the path and the system's reason; the path's old contents stay as they were.
class AtomicFile {
 public:
  /// Creates `<path>.partial`.
  explicit AtomicFile(std::filesystem::path path);
  /// Removes the partial file unless commit() has been reached.
  ~AtomicFile();
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;

  void append(std::string_view bytes);
  /// Replaces bytes that were appended before, for headers that are known last.
  void overwrite(std::uint64_t offset, std::string_view bytes);
  /// Everything is on the disk afterwards, under the partial name. No writing after it.
  void flush();
  /// flush(), then gives the file its name, and flushes the folder so that the name survives a power cut too.
  void commit();

  const std::filesystem::path& path() const { return path_; }

 private:
  void write_buffer();
  void write_all(std::string_view bytes, std::uint64_t offset);
  [[noreturn]] void fail(const char* action, int error) const;

  std::filesystem::path path_;
  std::filesystem::path partial_;
  std::string buffer_;
  std::uint64_t written_ = 0;
  int descriptor_ = -1;
  bool owns_partial_ = false;
};

/// Writes the whole file.
void write_atomically(const std::filesystem::path& path, std::string_view bytes);
/// The callback appends the contents; an exception that it throws leaves the path as it was.
void write_atomically(const std::filesystem::path& path, const std::function<void(AtomicFile&)>& write);

}  // namespace engram::data
