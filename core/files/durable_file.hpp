#pragma once
/// Writing a file so that its path holds either the whole old or the whole new contents, whatever happens. The bytes
/// go to `<path>.partial` in the same folder, are flushed to the disk, and only then renamed over the path. A process
/// that is killed may leave the `.partial` behind; the next writer of the path takes it over. A symbolic link at the
/// path stays: the file that it names is replaced, and the partial one lies beside that.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>

namespace engram {

/// Makes a folder, and those that it lies in, where they are not there. The names of all that it made are on the disk
/// afterwards, so that a power cut does not take what is saved in them. Returns the system's error, as
/// std::filesystem::create_directories does, also for a file of that name.
std::error_code make_durable_folder(const std::filesystem::path& folder);

/// Buffered writing to an open descriptor. Every error is a FileError that names the path and the system's reason.
class BufferedOutput {
 public:
  /// `descriptor` stays the caller's; `path` is the name in messages.
  BufferedOutput(int descriptor, std::filesystem::path path) : descriptor_(descriptor), path_(std::move(path)) {}

  void append(std::string_view bytes);
  /// Replaces bytes that were appended before: for fields that are known last, such as checksums.
  void overwrite(std::uint64_t offset, std::string_view bytes);
  /// Hands everything to the system; a full disk is usually noticed here.
  void write_buffer();
  /// Everything is on the disk afterwards.
  void flush();

  const std::filesystem::path& path() const { return path_; }
  /// Throws the FileError for a system call that failed with `error`.
  [[noreturn]] void fail(const char* action, int error) const;

 private:
  void write_all(std::string_view bytes, std::uint64_t offset);

  int descriptor_;
  std::filesystem::path path_;
  std::string buffer_;
  std::uint64_t written_ = 0;
};

/// A file in the making. Several files can be made to change together, nearly: flush() all of them, then commit() all
/// of them; what is likely to fail (space, permission) fails before any has replaced its predecessor. All functions
/// throw FileError; whatever they throw, the path keeps its old contents and the partial file is removed.
class DurableFile {
 public:
  /// Creates `<path>.partial`. Throws FileError when the folder is missing or may not be written, when the path is or
  /// links to something else than a regular file, /proc's links to open files among them (/dev/stdout), and when
  /// another DurableFile of this path is open, here or in another process.
  explicit DurableFile(const std::filesystem::path& path);
  ~DurableFile();
  DurableFile(DurableFile&& other) noexcept;
  DurableFile& operator=(DurableFile&&) = delete;

  void append(std::string_view bytes) { output_.append(bytes); }
  void overwrite(std::uint64_t offset, std::string_view bytes) { output_.overwrite(offset, bytes); }
  /// Everything is on the disk afterwards, under the partial name.
  void flush() { output_.flush(); }
  /// flush(), then gives the file its name, and flushes the folder so that the name survives a power cut too.
  /// Nothing may follow.
  void commit();

  const std::filesystem::path& path() const { return output_.path(); }

 private:
  std::filesystem::path target_, partial_;
  int descriptor_ = -1;
  BufferedOutput output_;
  bool owns_partial_ = true;
};

/// Replaces the contents of the file as a whole.
void write_durably(const std::filesystem::path& path, std::string_view contents);
/// The callback appends the contents piece by piece; an exception that it throws leaves the path as it was.
void write_durably(const std::filesystem::path& path, const std::function<void(DurableFile&)>& write);

}  // namespace engram
