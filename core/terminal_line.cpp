#include "core/terminal_line.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "core/held_signals.hpp"

namespace engram {
namespace {

// Like the terminal itself, of the process as a whole: messages come from everywhere, and handlers of signals reach
// nothing else.
std::mutex line_mutex;
bool line_stands = false;  // guarded by it

void write_to_terminal(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(STDERR_FILENO, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;  // nobody sees it: no reason to end what is being done
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

/// With the mutex locked. Whether there was a line.
bool take_standing_line_away() {
  if (!line_stands) return false;
  line_stands = false;
  write_to_terminal("\r\x1b[J");
  return true;
}

}  // namespace

void show_terminal_line(std::string_view line) {
  const HeldSignals signals;
  const std::lock_guard lock(line_mutex);
  line_stands = true;
  // Written over the one before, so that nothing flickers; what is left of that is erased behind it.
  write_to_terminal("\r" + std::string(line) + "\x1b[J\r");
}

void take_terminal_line_away() {
  const HeldSignals signals;
  const std::lock_guard lock(line_mutex);
  take_standing_line_away();
}

void beside_terminal_line(const std::function<void()>& write) {
  const HeldSignals signals;
  const std::lock_guard lock(line_mutex);
  take_standing_line_away();
  write();
}

TerminalLineOfHandler::TerminalLineOfHandler() : writing_(line_mutex, std::try_to_lock) {
  constexpr int kMostMilliseconds = 100;
  for (int waited = 0; !writing_ && !writing_.try_lock() && waited < kMostMilliseconds; ++waited) ::poll(nullptr, 0, 1);
  if (writing_) taken_away_ = take_standing_line_away();
}

}  // namespace engram
