#pragma once
/// Signals that come all the time, to a handler that runs on the stack of whoever it interrupts.

#include <signal.h>
#include <sys/time.h>

#include <atomic>
#include <cstdint>

namespace engram::harness {

/// While it lives, SIGALRM comes every 200 microseconds. Not more than one at a time.
class SignalStorm {
 public:
  SignalStorm() {
    count() = 0;
    struct sigaction action = {};
    action.sa_handler = [](int) { count().fetch_add(1, std::memory_order_relaxed); };
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, &before_);
    set_timer(200);
  }
  ~SignalStorm() {
    set_timer(0);
    sigaction(SIGALRM, &before_, nullptr);
  }
  SignalStorm(const SignalStorm&) = delete;
  SignalStorm& operator=(const SignalStorm&) = delete;

  /// How often the handler ran.
  std::int64_t signals() const { return count(); }

 private:
  static std::atomic<std::int64_t>& count() {
    static std::atomic<std::int64_t> signals = 0;
    return signals;
  }
  static void set_timer(int microseconds) {
    const itimerval timer{{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_REAL, &timer, nullptr);
  }
  struct sigaction before_ = {};
};

}  // namespace engram::harness
