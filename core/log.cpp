#include "core/log.hpp"

#include <cstdio>
#include <mutex>
#include <string>
#include <utility>

#include "core/message_text.hpp"
#include "core/terminal_line.hpp"
#include "core/wrapped_message.hpp"

namespace engram {
namespace {

// What is written to stderr is the process's, as stderr is. Set while it has one thread.
bool& left_to_others() {
  static bool left = false;
  return left;
}

/// Where messages go, which is the process's for the same reason: a library's messages have no other way to it.
struct Destination {
  std::mutex guard;
  LogSink sink;  // empty: stderr
};
Destination& destination() {
  static Destination all;
  return all;
}

/// `before`: what stands before the message on stderr.
void tell(LogLevel level, std::string_view before, std::string_view message) {
  if (left_to_others()) return;
  {
    Destination& to = destination();
    const std::lock_guard lock(to.guard);
    if (to.sink) return to.sink(level, message);
  }
  const std::string ended = wrapped_message(std::string(before).append(message), message_columns()) + "\n";
  beside_terminal_line([&ended] { std::fwrite(ended.data(), 1, ended.size(), stderr); });
}

}  // namespace

void log(LogLevel level, std::string_view message) {
  tell(level, level == LogLevel::warning ? "engram: warning: " : "engram: ", message_text(message));
}

void log_line(std::string_view line) { tell(LogLevel::info, "", line); }

LogSink send_log_to(LogSink sink) {
  Destination& to = destination();
  const std::lock_guard lock(to.guard);
  return std::exchange(to.sink, std::move(sink));
}

void leave_log_to_others() { left_to_others() = true; }
bool log_is_left_to_others() { return left_to_others(); }

}  // namespace engram
