#include "apps/run/folder/run_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "core/error.hpp"

namespace engram {

RunLock::RunLock(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "lock";
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0)
    throw FileError(
        text("training: '", path.string(), "' must be writable, got '", std::generic_category().message(errno), "'"));
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  ::close(descriptor_);
  throw UsageError(text("training: one process at a time may train in '", folder.string(), "', got a second one",
                        "\n  wait for the other, or stop it: it saves, and --resume goes on from there"));
}

RunLock::~RunLock() { ::close(descriptor_); }

}  // namespace engram
