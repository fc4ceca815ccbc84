#include "core/log.hpp"

#include <cstdio>
#include <string>

#include "core/terminal_line.hpp"

namespace engram {
namespace {

// What is written to stderr is the process's, as stderr is. Set while it has one thread.
bool& left_to_others() {
  static bool left = false;
  return left;
}

}  // namespace

void log(LogLevel level, std::string_view message) {
  log_line(std::string(level == LogLevel::warning ? "engram: warning: " : "engram: ").append(message));
}

void log_line(std::string_view line) {
  if (left_to_others()) return;
  const std::string ended = std::string(line) + "\n";
  beside_terminal_line([&ended] { std::fwrite(ended.data(), 1, ended.size(), stderr); });
}

void leave_log_to_others() { left_to_others() = true; }
bool log_is_left_to_others() { return left_to_others(); }

}  // namespace engram
