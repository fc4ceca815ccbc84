#include "apps/training/signals.hpp"

#include <csignal>

namespace engram {
namespace {

// A handler can reach nothing else.
volatile std::sig_atomic_t stop_received = 0;

extern "C" void engram_stop(int) { stop_received = 1; }

void install(void (*handler)(int), int flags) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

StopSignals::StopSignals() {
  stop_received = 0;
  // SA_RESETHAND: the second signal finds the default action. SA_RESTART: saving is not disturbed by the first.
  install(engram_stop, static_cast<int>(SA_RESETHAND | SA_RESTART));
}
StopSignals::~StopSignals() { install(SIG_DFL, 0); }

bool StopSignals::received() const { return stop_received != 0; }

}  // namespace engram
