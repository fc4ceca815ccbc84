#pragma once
/// One process at a time trains in a run's folder.

#include <filesystem>

namespace engram {

/// Holds RUN_DIR/lock for its life. The system lets go of it when the process ends, however that happens; the empty
/// file stays.
class RunLock {
 public:
  /// The folder must exist. Throws UsageError when another process holds it, FileError when the file cannot be opened.
  /// File systems without locks are taken as they are.
  explicit RunLock(const std::filesystem::path& folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int descriptor_ = -1;
};

/// Whether a process of this machine holds the lock of a folder. Only asks the system (Linux, /proc/locks), and never
/// takes the lock itself, so that a training that begins meanwhile is not refused. False where the system does not say.
/// `locks`, `mounts`: where it does. Where `mounts` does not list the folder's file system, as in a chroot, a lock of a
/// file of the same number in another one is taken for the folder's.
bool is_locked(const std::filesystem::path& folder, const std::filesystem::path& locks = "/proc/locks",
               const std::filesystem::path& mounts = "/proc/self/mountinfo");

}  // namespace engram
