#pragma once
/// Where the time of a step goes: every kernel's calls and the time spent in them.

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/step.hpp"

namespace engram {

class KernelTimes final : public KernelObserver {
 public:
  /// Waits for the backend around every kernel, so that a device that works behind the host is timed as well; steps
  /// that are observed are slower there than others.
  explicit KernelTimes(Backend& backend) : backend_(&backend) {}

  struct Total {
    std::int64_t calls = 0;
    double seconds = 0;  ///< without the kernels that it called itself
    double bytes = 0;    ///< of the tensors that it was called with, each once; matrix views are not counted
  };

  void before(const char* kernel) override;
  void after(const char* kernel) override;
  void tensors(const char* kernel, std::span<const TensorArgument> arguments) override;

  const std::map<std::string, Total, std::less<>>& totals() const { return totals_; }
  /// Of one kernel; 0 when it never ran.
  double seconds(std::string_view kernel) const;
  /// Of all kernels together.
  double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Running {
    Clock::time_point start;
    double inner_seconds = 0;
  };
  Backend* backend_;
  std::vector<Running> running_;
  std::map<std::string, Total, std::less<>> totals_;
};

}  // namespace engram
