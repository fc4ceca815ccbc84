#pragma once
/// Where the time of a step goes: every kernel's calls and the time spent in them.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/step.hpp"

namespace engram {

class KernelTimes final : public KernelObserver {
 public:
  /// Marks the places before and after every kernel (Backend::mark). The host does not wait for a device that works
  /// behind it, so that kernels are as close to each other as in other steps; where the host is slower than they are,
  /// a kernel's time has what the device waited for it.
  explicit KernelTimes(Backend& backend) : backend_(&backend) {}

  struct Total {
    std::int64_t calls = 0;
    double seconds = 0;  ///< without the kernels that it called itself
    /// Handed to the device (core/launch_count.hpp), without those of the kernels that it called itself; 0 where nobody
    /// counts.
    std::int64_t launches = 0;
    double bytes = 0;  ///< of the tensors that it was called with, each once; matrix views are not counted
  };

  void before(const char* kernel) override;
  void after(const char* kernel) override;
  void tensors(const char* kernel, std::span<const TensorArgument> arguments) override;

  /// Of all calls that have ended. Waits for the device.
  const std::map<std::string, Total, std::less<>>& totals() const;
  /// Of one kernel; 0 when it never ran.
  double seconds(std::string_view kernel) const;
  /// Of all kernels together.
  double seconds() const;

 private:
  struct Call {
    const char* kernel;
    const char* caller;                      // the kernel that called it; nullptr: none
    std::int64_t launches;                   // before it; of what it took, when it has ended
    std::shared_ptr<const Mark> begin, end;  // shared by copies of this object
  };
  /// Adds the times of all calls, which have ended, to the totals.
  void settle() const;

  Backend* backend_;
  std::vector<std::size_t> running_;  // of calls_
  // What is seen is the same before and after marks were turned into times.
  mutable std::vector<Call> calls_;
  mutable std::map<std::string, Total, std::less<>> totals_;
};

}  // namespace engram
