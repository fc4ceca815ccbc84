#include "core/held_signals.hpp"

#include <pthread.h>

#include <initializer_list>

namespace engram {
namespace {

// Whether this thread holds its signals already, without asking the kernel.
thread_local bool held = false;

sigset_t held_ones() {
  sigset_t signals;
  sigfillset(&signals);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPIPE, SIGXFSZ})
    sigdelset(&signals, own);
  return signals;
}

}  // namespace

HeldSignals::HeldSignals() : outermost_(!held) {
  if (!outermost_) return;
  const sigset_t signals = held_ones();
  pthread_sigmask(SIG_BLOCK, &signals, &before_);
  held = true;
}
HeldSignals::~HeldSignals() {
  if (!outermost_) return;
  held = false;
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void hold_signals_for_good() {
  if (held) return;
  const sigset_t signals = held_ones();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  held = true;
}

}  // namespace engram
