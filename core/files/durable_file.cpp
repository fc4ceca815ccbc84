#include "core/files/durable_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/files/restarted.hpp"

namespace engram {
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

[[noreturn]] void fail_at(const std::filesystem::path& path, const char* action, int error) {
  throw FileError(text("write_file: '", path.string(), "' must be writable, got '",
                       std::generic_category().message(error), "' from ", action, "\n  ", advice(error, path)));
}

// What a path's symbolic links lead to in the end, whether it is there or not.
std::filesystem::path follow_links(const std::filesystem::path& path) {
  constexpr int kMostLinks = 40;  // as the system follows
  std::filesystem::path target = path;
  std::error_code error;
  for (int links = 0; std::filesystem::is_symlink(target, error); ++links) {
    if (links == kMostLinks) fail_at(path, "open", ELOOP);
    // Links there are names of open files: /dev/stdout. To put a file in the place of one helps nobody.
    if (target.string().starts_with("/proc/"))
      throw FileError(text("write_file: '", path.string(), "' must be the path of a file, got one of an open file",
                           "\n  name a file that is to be made"));
    const std::filesystem::path next = std::filesystem::read_symlink(target, error);
    if (error) fail_at(path, "readlink", error.value());
    target = folder_of(target) / next;  // an absolute path replaces the folder
  }
  return target;
}

// Renaming over a device or a pipe would silently replace it by a file.
void check_replaceable(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return;
  if (S_ISDIR(status.st_mode)) fail_at(path, "open", EISDIR);
  if (!S_ISREG(status.st_mode))
    throw FileError(text("write_file: '", path.string(), "' must be a regular file, got a device, pipe or socket",
                         "\n  name a file that is to be made"));
}

// Two writers of one partial file would mix their bytes, so the first one locks it. The lock belongs to the open
// file, hence a killed process does not leave it behind.
int open_locked(const std::filesystem::path& path, const std::filesystem::path& partial) {
  check_replaceable(path);
  for (;;) {
    const int descriptor = restarted(
        [&partial] { return ::open(partial.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666); });
    if (descriptor < 0) fail_at(path, "open", errno);
    const bool locked_by_other =
        restarted([descriptor] { return ::flock(descriptor, LOCK_EX | LOCK_NB); }) != 0 && errno == EWOULDBLOCK;
    struct stat opened {};
    struct stat named {};
    // The other writer may have renamed or removed the file between our open and our lock.
    const bool readable =
        ::fstat(descriptor, &opened) == 0 && (::stat(partial.c_str(), &named) == 0 || errno == ENOENT);
    const bool current = readable && opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
    if (current && !locked_by_other && restarted([descriptor] { return ::ftruncate(descriptor, 0); }) == 0)
      return descriptor;
    const int error = errno;
    if (current && !locked_by_other) ::unlink(partial.c_str());
    ::close(descriptor);
    if (!locked_by_other && (current || !readable)) fail_at(path, current ? "truncate" : "stat", error);
    if (locked_by_other)
      throw FileError(text("write_file: '", path.string(), "' must have one writer at a time, got a second one",
                           "\n  another process is writing it just now; let it end, or write elsewhere"));
  }
}

/// What is in the folder has its name on the disk afterwards. Returns the system's error, or 0: a folder that may be
/// written but not read cannot be opened, and some file systems cannot flush folders.
int flush_folder(const std::filesystem::path& path) {
  const int folder = restarted([&path] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (folder < 0) return errno == EACCES || errno == EPERM ? 0 : errno;
  const int error = restarted([folder] { return ::fsync(folder); }) == 0 ? 0 : errno;
  ::close(folder);
  return error == EINVAL || error == ENOTSUP ? 0 : error;
}

}  // namespace

std::error_code make_durable_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> made;
  for (std::filesystem::path one = folder; !one.empty() && !std::filesystem::exists(one, error) && !error;
       one = one.parent_path())
    made.push_back(one);
  // It reports no error for an existing file.
  std::filesystem::create_directories(folder, error);
  if (!error && !std::filesystem::is_directory(folder, error) && !error)
    error = std::make_error_code(std::errc::not_a_directory);
  for (const std::filesystem::path& one : made)
    if (!error) error = {flush_folder(folder_of(one)), std::generic_category()};
  return error;
}

void BufferedOutput::append(std::string_view bytes) {
  if (buffer_.size() + bytes.size() > kBufferBytes) write_buffer();
  if (bytes.size() < kBufferBytes) {
    buffer_ += bytes;
  } else {
    write_all(bytes, written_);
    written_ += bytes.size();
  }
}

void BufferedOutput::overwrite(std::uint64_t offset, std::string_view bytes) {
  write_buffer();
  write_all(bytes, offset);
}

void BufferedOutput::write_buffer() {
  write_all(buffer_, written_);
  written_ += buffer_.size();
  buffer_.clear();
}

void BufferedOutput::flush() {
  write_buffer();
  if (restarted([this] { return ::fsync(descriptor_); }) != 0) fail("fsync", errno);
}

void BufferedOutput::fail(const char* action, int error) const { fail_at(path_, action, error); }

void BufferedOutput::write_all(std::string_view bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t count =
        restarted([&] { return ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
    if (count <= 0) fail("write", count < 0 ? errno : EIO);
    bytes.remove_prefix(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
}

DurableFile::DurableFile(const std::filesystem::path& path)
    : target_(follow_links(path)),
      partial_(target_.string() + ".partial"),
      descriptor_(open_locked(path, partial_)),
      output_(descriptor_, path) {}

DurableFile::DurableFile(DurableFile&& other) noexcept
    : target_(std::move(other.target_)),
      partial_(std::move(other.partial_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      output_(std::move(other.output_)),
      owns_partial_(std::exchange(other.owns_partial_, false)) {}

DurableFile::~DurableFile() {
  // Removed before the lock is given up: afterwards it may be another writer's.
  if (owns_partial_) ::unlink(partial_.c_str());
  if (descriptor_ >= 0) ::close(descriptor_);
}

void DurableFile::commit() {
  flush();
  if (::rename(partial_.c_str(), target_.c_str()) != 0) output_.fail("rename", errno);
  owns_partial_ = false;
  // The lock ends here: the next save may begin. The bytes are on the disk, so closing cannot fail them.
  ::close(std::exchange(descriptor_, -1));
  if (const int error = flush_folder(folder_of(target_)); error != 0)
    throw FileError(text("write_file: '", path().string(), "' is written, but its new name must be on the disk, got '",
                         std::generic_category().message(error), "' from fsync of the folder",
                         "\n  the file is whole; do it again once the disk is well, as a power cut may bring back what "
                         "was there before"));
}

void write_durably(const std::filesystem::path& path, std::string_view contents) {
  write_durably(path, [contents](DurableFile& file) { file.append(contents); });
}

void write_durably(const std::filesystem::path& path, const std::function<void(DurableFile&)>& write) {
  DurableFile file(path);
  write(file);
  file.commit();
}

}  // namespace engram
