#pragma once
/// Terminals for tests: one that stderr of the test itself is, and one that a run of the program is started from.

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "tests/apps/commands/command_line_process.hpp"
#include "tests/apps/terminal/terminal_screen.hpp"

namespace engram::harness {

/// Whether the system gives any; tests of them have nothing to run where it does not, as in some containers.
bool has_pseudo_terminals();

/// A pseudo-terminal and what was written to it.
class PseudoTerminal {
 public:
  explicit PseudoTerminal(std::size_t columns, Narrowing narrowing = Narrowing::wraps);
  ~PseudoTerminal();
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;

  /// Opens what a program has as its terminal; the caller's.
  int open() const;
  /// 0: the terminal does not say; the screen stays as it is.
  void resize(std::size_t columns);
  void type(std::string_view keys) const;
  /// Reads what has been written so far. False when nobody can write any more.
  bool read();
  /// Reads until the bytes are as wanted. Throws std::runtime_error after 20 seconds, or when nobody writes any more.
  void read_until(const std::function<bool(const std::string& bytes)>& wanted);

  const std::string& bytes() const { return bytes_; }
  const TerminalScreen& screen() const { return screen_; }
  /// Without the messages of the run, whose rows must be there: whether the screen has messages alone.
  bool has_messages_alone() const { return screen_.rows() == rows_of_messages(bytes_, columns_); }

 private:
  int master_ = -1;
  std::size_t columns_;
  std::string bytes_;
  TerminalScreen screen_;
};

/// While it lives, stderr is something else, and TERM, NO_COLOR and COLUMNS are as given; what is not given is not set,
/// but for TERM, which is "xterm".
class OtherStderr {
 public:
  using Variables = std::map<std::string, std::string>;
  /// The descriptor is closed.
  explicit OtherStderr(int opened, const Variables& variables = {});
  ~OtherStderr();
  OtherStderr(const OtherStderr&) = delete;
  OtherStderr& operator=(const OtherStderr&) = delete;

 private:
  int before_;
  std::map<std::string, std::optional<std::string>> variables_before_;
};

/// The program as a shell starts it on a terminal, in the foreground; ended with SIGKILL when this goes away.
class TerminalProcess {
 public:
  TerminalProcess(PseudoTerminal& terminal, const Arguments& arguments);
  ~TerminalProcess();
  TerminalProcess(const TerminalProcess&) = delete;
  TerminalProcess& operator=(const TerminalProcess&) = delete;

  /// What waitpid() says when it has stopped or ended. The terminal is read meanwhile, in the end to its end.
  int wait();
  void send(int signal) const;

 private:
  int next_number();

  PseudoTerminal& terminal_;
  pid_t shell_ = -1, program_ = -1;
  int reports_ = -1;
};

}  // namespace engram::harness
