#pragma once
/// Steps that the device repeats by itself. Handing a step's kernels over one by one takes the host a few microseconds
/// each, which for small models is longer than the kernels run. A step that is the same as one before, with the same
/// shapes and addresses, is captured and from then on handed over as a whole.

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "core/backend.hpp"

namespace engram {

class StepReplay {
 public:
  /// Everything that the kernels of a step and their arguments depend on, except for what they read from the device.
  using Key = std::vector<std::int64_t>;

  explicit StepReplay(Backend& backend) : backend_(&backend) {}

  /// Does what `step` does. Until it has come to its end twice as it is, so that memory and plans have settled, then by
  /// capturing it; from then on what was captured is replayed, and `step` is not called. Returns whether that was so.
  /// Only for devices that work behind the host.
  bool run(const Key& key, const std::function<void()>& step);

  /// Of all calls: how many were replayed.
  std::int64_t replayed() const { return replayed_; }

 private:
  struct Seen {
    Key key;
    int times = 0;
    std::unique_ptr<Replay> replay;
  };
  static constexpr std::size_t kMostKeys = 32;

  Backend* backend_;
  std::list<Seen> seen_;  // the one used last in front
  std::int64_t replayed_ = 0;
};

}  // namespace engram
