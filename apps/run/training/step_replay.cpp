#include "apps/run/training/step_replay.hpp"

#include <algorithm>

namespace engram {

bool StepReplay::run(const Key& key, const std::function<void()>& step) {
  constexpr int kPlainRuns = 2;
  const auto found = std::ranges::find(seen_, key, &Seen::key);
  if (found != seen_.end()) {
    seen_.splice(seen_.begin(), seen_, found);
  } else {
    if (seen_.size() == kMostKeys) seen_.pop_back();
    seen_.push_front({.key = key, .times = 0, .replay = nullptr});
  }
  Seen& now = seen_.front();
  if (now.replay != nullptr) {
    now.replay->run();
    ++replayed_;
    return true;
  }
  if (now.times < kPlainRuns) {
    step();
    // Only now: one that ran out of memory has settled nothing.
    ++now.times;
  } else {
    now.replay = backend_->capture(step);
  }
  return false;
}

}  // namespace engram
