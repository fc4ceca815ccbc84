#pragma once
/// Ctrl-C, `kill` and a lost terminal end a run in an orderly way: the present step is finished, the run saved, the
/// program left with exit code 130.

#include <functional>

#include "core/error.hpp"

namespace engram {

/// The user stopped the program and everything worth keeping is saved. Not a failure: `main` prints its message and
/// exits with 130.
class Interrupted : public Error {
 public:
  using Error::Error;
};

/// The program's signals go to a thread that does nothing else from now on; the calling thread and those that it starts
/// take none (core/held_signals.hpp says why). For main, before anything starts a thread.
void take_signals_on_own_thread();

/// Calls `work` with a function that says whether SIGINT, SIGTERM, SIGHUP or SIGUSR1 has come. Meanwhile these only set
/// a flag and say so on stderr; a second one of them ends the program at once. Those that were ignored stay ignored: so
/// a shell starts what it leaves in the background. SIGPIPE is ignored, so that a reader of stderr who goes does not
/// end the run. Not more than one at a time.
///
/// One of several ranks, not `alone`, says nothing: a launcher also ends ranks by a signal when one has failed. And
/// when its work is Interrupted, it ignores these signals until it ends: all stop when one is told to, and its own copy
/// of what the launcher sends to all may come when everything is saved.
void run_until_stopped(bool alone, const std::function<void(const std::function<bool()>& stop)>& work);

/// While it lives, signals that would end or stop the program (Ctrl-C, Ctrl-Z and their like) take the line of progress
/// off the terminal first, and then do what they do. Those that are ignored or have a handler, that of StopSignals
/// among them, are left alone. Several may live at a time.
class TerminalLineSignals {
 public:
  TerminalLineSignals();
  ~TerminalLineSignals();
  TerminalLineSignals(const TerminalLineSignals&) = delete;
  TerminalLineSignals& operator=(const TerminalLineSignals&) = delete;
};

}  // namespace engram
