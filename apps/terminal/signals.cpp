#include "apps/terminal/signals.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <map>
#include <string_view>
#include <thread>

#include "core/held_signals.hpp"
#include "core/terminal_line.hpp"

namespace engram {
namespace {

// A handler can reach nothing else.
std::atomic<bool> stop_received = false;
std::atomic<bool> stop_is_said = true;
static_assert(std::atomic<bool>::is_always_lock_free);

/// Of TerminalLineSignals: what the system says of a signal is something else while its handler runs.
std::atomic<int> line_owners = 0;

void take_by(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  sigfillset(&action.sa_mask);   // one at a time
  action.sa_flags = SA_RESTART;  // whoever holds no signals is not disturbed by the first while saving
  sigaction(signal, &action, nullptr);
}

struct sigaction present_action(int signal) {
  struct sigaction action = {};
  sigaction(signal, nullptr, &action);
  return action;
}

extern "C" void engram_leave(int signal) {
  const int before = errno;
  {
    const TerminalLineOfHandler line;
    std::signal(signal, SIG_DFL);
    sigset_t it;
    sigemptyset(&it);
    sigaddset(&it, signal);
    std::raise(signal);
    pthread_sigmask(SIG_UNBLOCK, &it, nullptr);  // here it comes
  }
  // The program was stopped, and goes on.
  take_by(signal, engram_leave);
  errno = before;
}

extern "C" void engram_stop(int signal) {
  if (stop_received.exchange(true)) return engram_leave(signal);
  if (!stop_is_said) return;
  const int before = errno;
  const TerminalLineOfHandler line;
  std::string_view note = "\nengram: stopping after this step, then saving; once more: at once, without saving\n";
  // A terminal has shown which key it was.
  if (line.taken_away() || ::isatty(STDERR_FILENO) != 1) note.remove_prefix(1);
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, note.data(), note.size());
  errno = before;
}

void replace_all(void (*before)(int), void (*handler)(int)) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP})
    if (present_action(signal).sa_handler == before) take_by(signal, handler);
}

/// While it lives, signals that ask for an end call engram_stop.
class StopSignals {
 public:
  explicit StopSignals(bool says_so) {
    stop_received = false;
    stop_is_said = says_so;
    for (const int signal : kStopSignals) install(signal, engram_stop);
    install(SIGPIPE, SIG_IGN);
  }
  ~StopSignals() {
    for (const auto& [signal, action] : before_) sigaction(signal, &action, nullptr);
  }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  void ignore_from_now_on() {
    for (const int signal : kStopSignals) {
      take_by(signal, SIG_IGN);
      before_.erase(signal);
    }
  }

 private:
  static constexpr int kStopSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

  void install(int signal, void (*handler)(int)) {
    const struct sigaction before = present_action(signal);
    if (before.sa_handler == SIG_IGN) return;
    take_by(signal, handler);
    before_.emplace(signal, before);
  }

  std::map<int, struct sigaction> before_;
};

}  // namespace

void take_signals_on_own_thread() {
  std::thread([] {
    for (;;) ::pause();
  }).detach();
  hold_signals_for_good();
}

void run_until_stopped(bool alone, const std::function<void(const std::function<bool()>& stop)>& work) {
  StopSignals signals(alone);
  try {
    work([] { return stop_received.load(); });
  } catch (const Interrupted&) {
    if (!alone) signals.ignore_from_now_on();
    throw;
  }
}

TerminalLineSignals::TerminalLineSignals() {
  if (line_owners++ == 0) replace_all(SIG_DFL, engram_leave);
}
TerminalLineSignals::~TerminalLineSignals() {
  if (--line_owners == 0) replace_all(engram_leave, SIG_DFL);
}

}  // namespace engram
