#include "apps/terminal/session_signals.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "core/error.hpp"

namespace engram {
namespace {

// A handler can reach nothing else.
std::atomic<int> session_pipe = -1;
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void engram_tell_session(int signal) {
  const int before = errno;
  const auto byte = static_cast<unsigned char>(signal);
  // A full pipe has told enough.
  [[maybe_unused]] const ssize_t written = ::write(session_pipe, &byte, 1);
  errno = before;
}

}  // namespace

SessionSignals::SessionSignals() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0)
    throw Error(text("generate: a session needs a pipe, got '", std::strerror(errno), "'"));
  read_end_ = ends[0];
  write_end_ = ends[1];
  session_pipe = write_end_;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCONT, SIGWINCH}) {
    struct sigaction action = {}, before = {};
    sigaction(signal, nullptr, &before);
    const bool ends_programs = signal == SIGINT || signal == SIGTERM || signal == SIGHUP;
    if (ends_programs && before.sa_handler == SIG_IGN) continue;
    action.sa_handler = engram_tell_session;
    action.sa_flags = SA_RESTART;
    sigaction(signal, &action, nullptr);
    before_.emplace(signal, before);
  }
}

SessionSignals::~SessionSignals() {
  for (const auto& [signal, action] : before_) sigaction(signal, &action, nullptr);
  // Handlers that come late write nowhere.
  session_pipe = -1;
  ::close(write_end_);
  ::close(read_end_);
}

int SessionSignals::next() {
  unsigned char byte = 0;
  ssize_t count = 0;
  do count = ::read(read_end_, &byte, 1);
  while (count < 0 && errno == EINTR);
  if (count != 1) return 0;
  if (byte == SIGTERM || byte == SIGHUP) ended_ = byte;
  return byte;
}

bool SessionSignals::stop() {
  bool stopped = ended_ != 0;
  for (int signal = next(); signal != 0; signal = next()) stopped = stopped || signal == SIGINT || ended_ != 0;
  return stopped;
}

int SessionSignals::wait_for(int descriptor) {
  for (;;) {
    if (const int signal = next(); signal != 0) return signal;
    std::array<pollfd, 2> both{pollfd{descriptor, POLLIN, 0}, pollfd{read_end_, POLLIN, 0}};
    const int ready = ::poll(both.data(), both.size(), -1);
    // Where the system cannot wait, reading does.
    if (ready < 0 ? errno != EINTR : both[1].revents == 0) return 0;
  }
}

}  // namespace engram
