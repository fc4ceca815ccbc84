#include "apps/run/training/step_replay.hpp"

#include <algorithm>

namespace engram {

StepRun StepReplay::run(const Key& key, const std::function<void()>& step) {
  constexpr int kPlainRuns = 2;
  const auto found = std::ranges::find(seen_, key, &Seen::key);
  if (found != seen_.end()) {
    seen_.splice(seen_.begin(), seen_, found);
  } else {
    if (seen_.size() == kMostKeys) seen_.pop_back();
    seen_.push_front({.key = key, .times = 0, .may_capture = true, .replay = nullptr});
  }
  Seen& now = seen_.front();
  if (now.replay != nullptr) {
    now.replay->run();
    ++replayed_;
    return StepRun::replayed;
  }
  if (now.times < kPlainRuns || !now.may_capture) {
    step();
    // Only now: one that ran out of memory has settled nothing.
    ++now.times;
  } else {
    now.replay = backend_->capture(step);
    if (now.replay == nullptr) {
      now.may_capture = false;
      return StepRun::only_recorded;
    }
    ++captured_;
    keep_few();
  }
  return StepRun::handed_over;
}

void StepReplay::keep_few() {
  std::size_t nodes = 0;
  for (Seen& seen : seen_) {
    if (seen.replay == nullptr) continue;
    nodes += seen.replay->nodes();
    if (&seen == &seen_.front() || nodes <= kMostNodes) continue;
    nodes -= seen.replay->nodes();
    seen.replay.reset();
  }
}

bool StepReplay::forget() {
  const bool any = std::ranges::any_of(seen_, [](const Seen& seen) { return seen.replay != nullptr; });
  seen_.clear();
  return any;
}

}  // namespace engram
