#pragma once
/// Threads that compute take no signals. oneDNN's products run with the stack pointer inside their own memory on the
/// heap, and a handler that interrupts one has its frame written there, over whatever lies below: numbers, or the
/// heap's own lists.

#include <csignal>

namespace engram {

/// While it lives, no handler runs on the thread that made it: signals wait, or go to a thread that takes them. Those
/// that a thread causes itself (SIGSEGV, SIGPIPE and their like) are left alone. Inside another one, or on a thread
/// that holds them for good, it costs nothing; else two system calls. Made and destroyed on one thread, the last one
/// first.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  bool outermost_;
  sigset_t before_;
};

/// Holds signals for the rest of the calling thread's life, and for threads that it starts from now on. A program that
/// calls it in main needs another thread that takes signals: Ctrl-C would else do nothing.
void hold_signals_for_good();

}  // namespace engram
