#include "core/wrapped_message.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace engram {
namespace {

/// How many columns the characters of a text take: bytes that go on with a character begin with the bits 10.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }));
}

/// Appends one line, without its end.
void append_wrapped(std::string& all, std::string_view line, std::size_t columns) {
  const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
  all.append(indent, ' ');
  std::size_t used = indent;
  bool begun = false;  // the row has a word
  for (std::size_t begin = indent; begin < line.size();) {
    const std::size_t word = std::min(line.find_first_not_of(' ', begin), line.size());
    const std::size_t end = std::min(line.find(' ', word), line.size());
    const std::size_t wide = width_of(line.substr(begin, end - begin));  // with the blanks before it
    if (begun && used + wide > columns) {
      used = indent + 2;
      all.append("\n").append(used, ' ').append(line.substr(word, end - word));
      used += wide - (word - begin);
    } else {
      all.append(line.substr(begin, end - begin));
      used += wide;
    }
    begun = true;
    begin = end;
  }
}

}  // namespace

std::size_t message_columns() {
  constexpr std::size_t kLeast = 40, kUsual = 80;
  if (::isatty(STDERR_FILENO) != 1) return 0;
  winsize size{};
  const bool said = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return said ? std::max<std::size_t>(size.ws_col, kLeast) : kUsual;
}

std::string wrapped_message(std::string_view message, std::size_t columns) {
  std::string all;
  for (bool more = columns > 0; more;) {
    const std::size_t end = std::min(message.find('\n'), message.size());
    const std::string_view line = message.substr(0, end);
    if (width_of(line) <= columns)
      all.append(line);
    else
      append_wrapped(all, line, columns);
    more = end < message.size();
    if (more) all += '\n';
    message.remove_prefix(std::min(end + 1, message.size()));
  }
  return all.append(message);
}

}  // namespace engram
