#include "apps/terminal/terminal.hpp"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "core/log.hpp"

namespace engram {
namespace {

std::string_view environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

}  // namespace

bool is_line_terminal() {
  if (log_is_left_to_others()) return false;
  return ::isatty(STDERR_FILENO) == 1 && environment("TERM") != "dumb";
}

bool takes_lines() {
  if (!is_line_terminal()) return false;
  // None for a terminal that is not the one that the program was started from.
  const pid_t foreground = ::tcgetpgrp(STDERR_FILENO);
  return foreground < 0 || foreground == ::getpgrp();
}

bool shows_colours() { return environment("NO_COLOR").empty(); }

}  // namespace engram
