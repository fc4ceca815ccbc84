#include "apps/data/files/read_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "core/error.hpp"
#include "core/files/json.hpp"
#include "core/files/parse_json.hpp"
#include "core/files/restarted.hpp"

namespace engram::data {
namespace {

class OpenFile {
 public:
  OpenFile(const std::filesystem::path& path, Pipes pipes) : descriptor_(open_to_read(path, pipes)) {}
  ~OpenFile() { ::close(descriptor_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace

void refuse_unreadable(const std::filesystem::path& path, int error) {
  throw FileError(text("read_file: '", path.string(), "' must be a readable file, got '",
                       std::generic_category().message(error), "'"));
}

int open_to_read(const std::filesystem::path& path, Pipes pipes) {
  // Looked at before it is opened: opening a pipe waits for its writer.
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) refuse_unreadable(path, errno);
  const bool allowed =
      S_ISREG(status.st_mode) || S_ISDIR(status.st_mode) || (S_ISFIFO(status.st_mode) && pipes == Pipes::read);
  if (!allowed)
    throw FileError(text("read_file: '", path.string(), "' must be a regular file",
                         pipes == Pipes::read ? " or a pipe" : "", ", got a ",
                         S_ISFIFO(status.st_mode)   ? "pipe"
                         : S_ISSOCK(status.st_mode) ? "socket"
                                                    : "device"));
  const int descriptor = restarted([&path] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); });
  if (descriptor < 0) refuse_unreadable(path, errno);
  return descriptor;
}

std::string read_bytes(const std::filesystem::path& path, Pipes pipes, std::size_t largest_pipe,
                       const ByteWatch& watch) {
  constexpr std::size_t kAtOnce = std::size_t{1} << 24;
  const OpenFile file(path, pipes);
  struct stat status {};
  if (::fstat(file.descriptor(), &status) != 0) refuse_unreadable(path, errno);
  std::string bytes;
  // The size is only a hint: pipes and the files of /proc report 0. One byte more than it finds the end at once.
  std::size_t capacity = status.st_size > 0 ? static_cast<std::size_t>(status.st_size) + 1 : 1 << 16;
  for (std::size_t used = 0;;) {
    bytes.resize(capacity);
    const ssize_t count = ::read(file.descriptor(), bytes.data() + used, std::min(capacity - used, kAtOnce));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse_unreadable(path, errno);
    used += static_cast<std::size_t>(count);
    if (watch) watch(static_cast<std::int64_t>(used), status.st_size);
    if (count == 0) {
      bytes.resize(used);
      return bytes;
    }
    if (S_ISFIFO(status.st_mode) && used > largest_pipe)
      throw FileError(text("read_file: the pipe '", path.string(), "' must end after at most ", largest_pipe,
                           " bytes, got more\n  write what it gives into a file, and name that"));
    if (used == capacity) capacity *= 2;
  }
}

nlohmann::json read_json(const std::filesystem::path& path, std::string_view format, int version) {
  nlohmann::json json = parse_object(read_bytes(path, Pipes::refused), path);
  require_format(json, path, format, version);
  return json;
}

nlohmann::json parse_object(std::string_view bytes, const std::filesystem::path& path, std::string_view advice) {
  nlohmann::json json = parse_json_or_discard(bytes);
  if (!json.is_object())
    throw FileError(text("read_json: '", path.string(), "' must be a JSON object, got something else\n  ", advice));
  return json;
}

void require_format(const nlohmann::json& object, const std::filesystem::path& path, std::string_view format,
                    int version) {
  const auto found_format = object.find("format");
  // Compared as strings: a value made of `format` to compare with is what GCC 12 warns of, falsely.
  if (found_format == object.end() || !found_format->is_string() ||
      found_format->get_ref<const std::string&>() != format)
    throw FileError(text("read_json: '", path.string(), "' must have \"format\": \"", format, "\", got ",
                         found_format == object.end() ? "none" : found_format->dump()));
  const auto found_version = object.find("version");
  if (found_version == object.end() || *found_version != version)
    throw FileError(text("read_json: '", path.string(), "' must be of version ", version, ", got ",
                         found_version == object.end() ? "none" : found_version->dump(),
                         "\n  prepare the data again with this program"));
}

}  // namespace engram::data
