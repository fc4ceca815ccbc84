#include "apps/data/atomic_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "core/error.hpp"

namespace engram::data {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 18;

std::filesystem::path folder_of(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.parent_path();
  return folder.empty() ? std::filesystem::path(".") : folder;
}

std::string advice(int error, const std::filesystem::path& path) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return text("the folder '", folder_of(path).string(), "' does not exist; create it first");
    case EACCES:
    case EPERM:
    case EROFS:
      return text("no permission to write in the folder '", folder_of(path).string(), "'");
    case ENOSPC:
    case EDQUOT:
      return "the disk is full; what the path held before is untouched";
    case EISDIR:
      return "the path is a folder; name a file";
    default:
      return "what the path held before is untouched";
  }
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)), partial_(path_) {
  partial_ += ".partial";
  descriptor_ = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail("open", errno);
  owns_partial_ = true;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      partial_(std::move(other.partial_)),
      buffer_(std::move(other.buffer_)),
      written_(other.written_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      owns_partial_(std::exchange(other.owns_partial_, false)) {}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (owns_partial_) ::unlink(partial_.c_str());
}

void AtomicFile::append(std::string_view bytes) {
  if (buffer_.size() + bytes.size() > kBufferBytes) write_buffer();
  if (bytes.size() < kBufferBytes) {
    buffer_ += bytes;
  } else {
    write_all(bytes, written_);
    written_ += bytes.size();
  }
}

void AtomicFile::overwrite(std::uint64_t offset, std::string_view bytes) {
  write_buffer();
  write_all(bytes, offset);
}

void AtomicFile::flush() {
  if (descriptor_ < 0) return;
  write_buffer();
  if (::fsync(descriptor_) != 0) fail("fsync", errno);
  // Network file systems may report a full disk only here.
  if (::close(std::exchange(descriptor_, -1)) != 0) fail("close", errno);
}

void AtomicFile::commit() {
  flush();
  if (::rename(partial_.c_str(), path_.c_str()) != 0) fail("rename", errno);
  owns_partial_ = false;
  // A folder that may be written but not read cannot be opened, and some file systems cannot flush folders; the
  // file is complete in either case, so neither is an error.
  const int folder = ::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  const int error = ::fsync(folder) == 0 ? 0 : errno;
  ::close(folder);
  if (error != 0 && error != EINVAL && error != ENOTSUP) fail("fsync of the folder", error);
}

void AtomicFile::write_buffer() {
  write_all(buffer_, written_);
  written_ += buffer_.size();
  buffer_.clear();
}

void AtomicFile::write_all(std::string_view bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("write", errno);
    bytes.remove_prefix(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
}

void AtomicFile::fail(const char* action, int error) const {
  throw FileError(text("write_file: '", path_.string(), "' must be writable, got '",
                       std::generic_category().message(error), "' from ", action, "\n  ", advice(error, path_)));
}

void write_atomically(const std::filesystem::path& path, std::string_view bytes) {
  write_atomically(path, [bytes](AtomicFile& file) { file.append(bytes); });
}

void write_atomically(const std::filesystem::path& path, const std::function<void(AtomicFile&)>& write) {
  AtomicFile file(path);
  write(file);
  file.commit();
}

}  // namespace engram::data
