#include "apps/training/signals.hpp"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string_view>
#include <thread>

#include "core/held_signals.hpp"

namespace engram {
namespace {

// A handler can reach nothing else.
std::atomic<bool> stop_received = false;
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void engram_stop(int signal) {
  if (stop_received.exchange(true)) {
    // It comes again when this returns, and finds no handler.
    std::signal(signal, SIG_DFL);
    std::raise(signal);
    return;
  }
  const int before = errno;
  // A terminal has shown a line without an end.
  std::string_view note = "\nengram: stopping after this step, then saving; once more: at once, without saving\n";
  if (::isatty(STDERR_FILENO) != 1) note.remove_prefix(1);
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, note.data(), note.size());
  errno = before;
}

}  // namespace

void take_signals_on_own_thread() {
  std::thread([] {
    for (;;) ::pause();
  }).detach();
  hold_signals_for_good();
}

StopSignals::StopSignals() {
  stop_received = false;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) install(signal, engram_stop);
  install(SIGPIPE, SIG_IGN);
}
StopSignals::~StopSignals() {
  for (const auto& [signal, action] : before_) sigaction(signal, &action, nullptr);
}

void StopSignals::install(int signal, void (*handler)(int)) {
  struct sigaction action = {}, before = {};
  sigaction(signal, nullptr, &before);
  if (before.sa_handler == SIG_IGN) return;
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;  // whoever holds no signals is not disturbed by the first while saving
  sigaction(signal, &action, nullptr);
  before_.emplace(signal, before);
}

bool StopSignals::received() const { return stop_received; }

}  // namespace engram
