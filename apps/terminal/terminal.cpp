#include "apps/terminal/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>

#include "apps/data/text/utf8.hpp"
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

std::int64_t terminal_columns() {
  constexpr std::int64_t kUsual = 80;
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const std::string_view stated = environment("COLUMNS");
  std::int64_t columns = 0;
  const auto [end, error] = std::from_chars(stated.data(), stated.data() + stated.size(), columns);
  return error == std::errc() && end == stated.data() + stated.size() && columns > 0 ? columns : kUsual;
}

bool shows_colours() { return environment("NO_COLOR").empty(); }

std::int64_t columns_of(std::string_view text) {
  // U+1100 is E1 84 80.
  constexpr std::string_view kFirstWide = "\xe1\x84\x80";
  std::int64_t columns = 0;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (data::is_utf8_start(text[i])) columns += text.substr(i, kFirstWide.size()) < kFirstWide ? 1 : 2;
  return columns;
}

}  // namespace engram
