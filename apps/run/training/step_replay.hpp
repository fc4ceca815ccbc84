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

enum class StepRun {
  handed_over,    ///< kernel by kernel, or while it was captured
  replayed,       ///< by the device: `step` was not called
  only_recorded,  ///< `step` was called, but the device has done nothing of it
};

class StepReplay {
 public:
  /// Everything that the kernels of a step and their arguments depend on, except for what they read from the device.
  using Key = std::vector<std::int64_t>;

  explicit StepReplay(Backend& backend) : backend_(&backend) {}

  /// Does what `step` does. Until it has come to its end twice as it is, so that memory and plans have settled, then by
  /// capturing it; from then on what was captured is replayed, and `step` is not called. Where the device has no memory
  /// for a captured step it is never captured again, and this time was only recorded: what `step` changed on the host
  /// must be undone, and the step be done without this object. Only for devices that work behind the host.
  StepRun run(const Key& key, const std::function<void()>& step);

  /// Of all calls: how many were replayed.
  std::int64_t replayed() const { return replayed_; }
  /// How many steps were captured.
  std::int64_t captured() const { return captured_; }

  /// Gives back the memory of all captured steps. Returns whether there were any.
  bool forget();

 private:
  struct Seen {
    Key key;
    int times = 0;
    bool may_capture = true;
    std::unique_ptr<Replay> replay;
  };
  /// So that steps of changing shapes do not take a card's memory: of each captured node it keeps a few KiB.
  void keep_few();
  static constexpr std::size_t kMostKeys = 32, kMostNodes = 100'000;

  Backend* backend_;
  std::list<Seen> seen_;  // the one used last in front
  std::int64_t replayed_ = 0, captured_ = 0;
};

}  // namespace engram
