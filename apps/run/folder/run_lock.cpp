#include "apps/run/folder/run_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

#include "core/error.hpp"
#include "core/files/restarted.hpp"

namespace engram {
namespace {

/// The device of a mounted file system as /proc/locks names it, with a blank before it: " fe:01". That of stat() is
/// another one on some file systems. Empty: not known.
std::string device_of_mount(std::uint64_t mount, const std::filesystem::path& mounts) {
  std::ifstream lines(mounts);
  for (std::string line; std::getline(lines, line);) {
    // "36 25 254:1 / /home rw ...": its number, that of the one it lies in, major and minor number of the device
    std::istringstream words(line);
    std::uint64_t number = 0, parent = 0;
    unsigned major = 0, minor = 0;
    char colon = 0;
    if (words >> number >> parent >> major >> colon >> minor && number == mount)
      return fmt::format(" {:02x}:{:02x}", major, minor);
  }
  return "";
}

}  // namespace

RunLock::RunLock(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "lock";
  descriptor_ = restarted([&path] { return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666); });
  if (descriptor_ < 0)
    throw FileError(
        text("training: '", path.string(), "' must be writable, got '", std::generic_category().message(errno), "'"));
  if (restarted([this] { return ::flock(descriptor_, LOCK_EX | LOCK_NB); }) == 0 || errno != EWOULDBLOCK) return;
  ::close(descriptor_);
  throw UsageError(text("training: one process at a time may train in '", folder.string(), "', got a second one",
                        "\n  wait for the other, or stop it: it saves, and --resume goes on from there"));
}

RunLock::~RunLock() { ::close(descriptor_); }

bool is_locked(const std::filesystem::path& folder, const std::filesystem::path& locks,
               const std::filesystem::path& mounts) {
  struct statx facts {};
  if (::statx(AT_FDCWD, (folder / "lock").c_str(), 0, STATX_INO | STATX_MNT_ID, &facts) != 0) return false;
  // "1: FLOCK  ADVISORY  WRITE 4711 fe:01:262146 0 EOF"
  const std::string device = (facts.stx_mask & STATX_MNT_ID) != 0 ? device_of_mount(facts.stx_mnt_id, mounts) : "";
  const std::string file = text(device, ":", static_cast<std::uint64_t>(facts.stx_ino), " ");
  std::ifstream lines(locks);
  for (std::string line; std::getline(lines, line);)
    if (line.find("FLOCK") != std::string::npos && line.find(file) != std::string::npos) return true;
  return false;
}

}  // namespace engram
