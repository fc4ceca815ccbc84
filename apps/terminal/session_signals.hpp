#pragma once
/// Ctrl-C in a session: it stops what the model writes, or clears the line that is typed, and ends nothing by itself.
/// Threads that compute take no signals (core/held_signals.hpp), so the one that does tells through a pipe.

#include <csignal>
#include <map>

namespace engram {

/// While it lives, SIGINT, SIGTERM, SIGHUP, SIGCONT and SIGWINCH are put into a pipe. Those of the first three that
/// were ignored stay ignored. Not more than one at a time.
class SessionSignals {
 public:
  /// Throws Error when the system has no pipe.
  SessionSignals();
  ~SessionSignals();
  SessionSignals(const SessionSignals&) = delete;
  SessionSignals& operator=(const SessionSignals&) = delete;

  /// The next signal that has come, 0 when there is none; never waits.
  int next();
  /// Whether the writing must stop: takes what has come.
  bool stop();
  /// Waits until there is something to read at a descriptor, at its end too, or a signal. Returns the signal, or 0.
  /// Never throws, as what edits lines calls it from C.
  int wait_for(int descriptor);
  /// The signal that ends the session, SIGTERM or SIGHUP, once next() has returned it; 0 before.
  int ended() const { return ended_; }

 private:
  int read_end_ = -1, write_end_ = -1, ended_ = 0;
  std::map<int, struct sigaction> before_;
};

}  // namespace engram
