#pragma once
/// The line that a program shows on its terminal over and over, on stderr. A process has one terminal and so one such
/// line; whatever else is written there takes it away first, so that every message begins on a row of its own.
///
/// While it stands the cursor is at its beginning, and it is taken away by erasing from there to the end of the screen.
/// That is right too where the terminal has become narrower since: one that wraps its rows anew keeps the cursor at the
/// beginning of what are now several rows, and one that does not has cut them off.

#include <functional>
#include <mutex>
#include <string_view>

namespace engram {

/// Shows a line, which must be narrower than the terminal, in the place of the one before. It may have escape sequences
/// that move no cursor. Only for a terminal that knows "\r" and the sequence "erase below" (that of ECMA-48).
void show_terminal_line(std::string_view line);
/// Does nothing where none stands.
void take_terminal_line_away();
/// Takes the line away and calls `write`, which writes messages or results; no line is shown until it returns. It must
/// not log and call nothing of this header.
void beside_terminal_line(const std::function<void()>& write);

/// For handlers of signals: takes the line away; while this lives none is shown. It waits for another thread that is
/// writing one, but not long, since a terminal may have been told to wait (Ctrl-S). Threads that show lines hold their
/// signals meanwhile (core/held_signals.hpp), so it interrupts none of them.
class TerminalLineOfHandler {
 public:
  TerminalLineOfHandler();
  TerminalLineOfHandler(const TerminalLineOfHandler&) = delete;
  TerminalLineOfHandler& operator=(const TerminalLineOfHandler&) = delete;

  /// Whether there was a line, so that the cursor is at the beginning of an empty row now.
  bool taken_away() const { return taken_away_; }

 private:
  std::unique_lock<std::mutex> writing_;
  bool taken_away_ = false;
};

}  // namespace engram
