#include "apps/run/folder/metrics_log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "core/error.hpp"
#include "core/files/json.hpp"
#include "core/files/restarted.hpp"

namespace engram {

MetricsLog::MetricsLog(std::filesystem::path path) : path_(std::move(path)) {
  descriptor_ = restarted([this] { return ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666); });
  if (descriptor_ < 0) fail("open", errno);
  try {
    cut_torn_line();
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

MetricsLog::~MetricsLog() { ::close(descriptor_); }

void MetricsLog::cut_torn_line() {
  off_t end = ::lseek(descriptor_, 0, SEEK_END);
  if (end < 0) fail("read", errno);
  const off_t size = end;
  for (char last = 0; end > 0; --end) {
    if (restarted([&] { return ::pread(descriptor_, &last, 1, end - 1); }) != 1) fail("read", errno);
    if (last == '\n') break;
  }
  if (end < size && restarted([&] { return ::ftruncate(descriptor_, end); }) != 0) fail("write", errno);
}

void MetricsLog::append(const nlohmann::json& object) {
  // Words of a command may be bytes of any kind.
  const std::string line = object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = restarted([&] { return ::write(descriptor_, rest.data(), rest.size()); });
    if (written < 0) fail("write", errno);
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

void MetricsLog::flush() {
  // Some file systems cannot: then there is nothing to wait for.
  if (restarted([this] { return ::fsync(descriptor_); }) != 0 && errno != EINVAL && errno != ENOTSUP)
    fail("flush", errno);
}

void MetricsLog::fail(const char* action, int error) const {
  throw FileError(
      text("metrics: cannot ", action, " '", path_.string(), "': ", std::generic_category().message(error)));
}

}  // namespace engram
