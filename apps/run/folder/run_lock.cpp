#include "apps/run/folder/run_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
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

bool is_locked(const std::filesystem::path& folder) {
  struct stat facts {};
  if (::stat((folder / "lock").c_str(), &facts) != 0) return false;
  // "1: FLOCK  ADVISORY  WRITE 4711 fe:01:262146 0 EOF"; the device is not that of stat() on every file system.
  std::ifstream locks("/proc/locks");
  const std::string end = text(":", static_cast<std::uint64_t>(facts.st_ino), " ");
  for (std::string line; std::getline(locks, line);)
    if (line.find("FLOCK") != std::string::npos && line.find(end) != std::string::npos) return true;
  return false;
}

}  // namespace engram
