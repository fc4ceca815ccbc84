#include "core/terminal_columns.hpp"

#include <sys/ioctl.h>

#include <charconv>
#include <cstdlib>

#include "core/utf8_sequence.hpp"

namespace engram {

std::int64_t terminal_columns(int descriptor) {
  constexpr std::int64_t kUsual = 80;
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* const written = std::getenv("COLUMNS");
  const std::string_view stated = written == nullptr ? "" : written;
  std::int64_t columns = 0;
  const auto [end, error] = std::from_chars(stated.data(), stated.data() + stated.size(), columns);
  return error == std::errc() && end == stated.data() + stated.size() && columns > 0 ? columns : kUsual;
}

std::int64_t columns_of(std::string_view text) {
  // U+1100 is E1 84 80.
  constexpr std::string_view kFirstWide = "\xe1\x84\x80";
  std::int64_t columns = 0;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (is_utf8_start(text[i])) columns += text.substr(i, kFirstWide.size()) < kFirstWide ? 1 : 2;
  return columns;
}

}  // namespace engram
