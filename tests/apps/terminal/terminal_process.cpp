#include "tests/apps/terminal/terminal_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <vector>

#include "tests/apps/commands/command_line_process.hpp"

namespace engram::harness {
namespace {

constexpr std::chrono::seconds kPatience{20};

/// Runs in the shell's child: only calls that are safe between fork and exec.
[[noreturn]] void become_foreground(char* const* arguments) {
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::setpgid(0, 0);
  // The terminal still belongs to the shell, which would be asked by a signal.
  ::signal(SIGTTOU, SIG_IGN);
  ::tcsetpgrp(STDERR_FILENO, ::getpid());
  ::signal(SIGTTOU, SIG_DFL);
  heed_signals();
  ::execv(arguments[0], arguments);
  ::_exit(127);
}

/// Runs in a child too. As a shell does it, so that stopping works: the program is no session of its own.
[[noreturn]] void become_shell(const char* terminal, char* const* arguments, int reports) {
  ::setsid();
  const int opened = ::open(terminal, O_RDWR);
  if (opened < 0 || ::ioctl(opened, TIOCSCTTY, 0) != 0) ::_exit(126);
  for (int stream = 0; stream < 3; ++stream) ::dup2(opened, stream);
  const pid_t program = ::fork();
  if (program == 0) become_foreground(arguments);
  [[maybe_unused]] ssize_t written = ::write(reports, &program, sizeof program);
  for (int status = 0; ::waitpid(program, &status, WUNTRACED) == program;) {
    written = ::write(reports, &status, sizeof status);
    if (!WIFSTOPPED(status)) ::_exit(0);
  }
  ::_exit(126);
}

}  // namespace

bool has_pseudo_terminals() {
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0) return false;
  const bool usable = ::grantpt(master) == 0 && ::unlockpt(master) == 0;
  const int opened = usable ? ::open(::ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC) : -1;
  if (opened >= 0) ::close(opened);
  ::close(master);
  return opened >= 0;
}

PseudoTerminal::PseudoTerminal(std::size_t columns, Narrowing narrowing)
    : master_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)), columns_(columns), screen_(columns, narrowing) {
  if (master_ < 0 || ::grantpt(master_) != 0 || ::unlockpt(master_) != 0)
    throw std::runtime_error("no pseudo-terminal could be made");
  ::fcntl(master_, F_SETFL, O_NONBLOCK);
  resize(columns);
}
PseudoTerminal::~PseudoTerminal() { ::close(master_); }

int PseudoTerminal::open() const {
  const int opened = ::open(::ptsname(master_), O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (opened < 0) throw std::runtime_error("a pseudo-terminal cannot be opened");
  return opened;
}

void PseudoTerminal::resize(std::size_t columns) {
  const winsize size{.ws_row = 24, .ws_col = static_cast<unsigned short>(columns), .ws_xpixel = 0, .ws_ypixel = 0};
  if (::ioctl(master_, TIOCSWINSZ, &size) != 0) throw std::runtime_error("a terminal cannot be resized");
  if (columns == 0) return;
  columns_ = columns;
  screen_.resize(columns);
}

void PseudoTerminal::type(std::string_view keys) const {
  if (::write(master_, keys.data(), keys.size()) != static_cast<ssize_t>(keys.size()))
    throw std::runtime_error("a terminal takes no keys");
}

bool PseudoTerminal::read() {
  char buffer[4096];
  for (;;) {
    const ssize_t count = ::read(master_, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return true;
    if (count <= 0) return false;
    bytes_.append(buffer, static_cast<std::size_t>(count));
    screen_.write({buffer, static_cast<std::size_t>(count)});
  }
}

void PseudoTerminal::read_until(const std::function<bool(const std::string& bytes)>& wanted) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (bool open = true; read() || (open = false), !wanted(bytes_);) {
    if (!open || std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error("a terminal has not what was waited for, but this:\n" + bytes_);
    pollfd readable{.fd = master_, .events = POLLIN, .revents = 0};
    ::poll(&readable, 1, 50);
  }
}

OtherStderr::OtherStderr(int opened, const Variables& variables) : before_(::dup(2)) {
  ::dup2(opened, 2);
  ::close(opened);
  for (const char* name : {"TERM", "NO_COLOR", "COLUMNS"}) {
    const char* const before = ::getenv(name);
    variables_before_[name] = before == nullptr ? std::nullopt : std::optional<std::string>(before);
    ::unsetenv(name);
  }
  ::setenv("TERM", "xterm", 1);
  for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
}
OtherStderr::~OtherStderr() {
  ::dup2(before_, 2);
  ::close(before_);
  for (const auto& [name, value] : variables_before_)
    if (value)
      ::setenv(name.c_str(), value->c_str(), 1);
    else
      ::unsetenv(name.c_str());
}

TerminalProcess::TerminalProcess(PseudoTerminal& terminal, const Arguments& arguments) : terminal_(terminal) {
  ::setenv("OMP_WAIT_POLICY", "passive", 0);
  std::vector<std::string> words = arguments;
  words.insert(words.begin(), program_of_build());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const OtherStderr variables(terminal.open());  // which the program inherits
  const int opened = terminal.open();
  const std::string name = ::ttyname(opened);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe could be made");
  shell_ = ::fork();
  if (shell_ == 0) become_shell(name.c_str(), pointers.data(), ends[1]);
  reports_ = ends[0];
  ::close(ends[1]);
  if (shell_ < 0) throw std::runtime_error("no process could be started");
  program_ = next_number();
  ::close(opened);
}

TerminalProcess::~TerminalProcess() {
  if (program_ > 0) ::kill(program_, SIGKILL);
  ::kill(shell_, SIGKILL);
  ::waitpid(shell_, nullptr, 0);
  ::close(reports_);
}

int TerminalProcess::next_number() {
  int number = 0;
  if (::read(reports_, &number, sizeof number) != sizeof number) throw std::runtime_error("a shell has ended early");
  return number;
}

int TerminalProcess::wait() {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  pollfd report{.fd = reports_, .events = POLLIN, .revents = 0};
  while (::poll(&report, 1, 10) == 0) {
    terminal_.read();
    if (std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error("a program neither stops nor ends:\n" + terminal_.bytes());
  }
  const int status = next_number();
  terminal_.read();
  if (!WIFSTOPPED(status)) program_ = -1;
  return status;
}

void TerminalProcess::send(int signal) const { ::kill(program_, signal); }

}  // namespace engram::harness
