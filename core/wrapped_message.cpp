#include "core/wrapped_message.hpp"

#include <algorithm>

#include "core/terminal_columns.hpp"

namespace engram {
namespace {

/// Appends one line, without its end.
void append_wrapped(std::string& all, std::string_view line, std::int64_t columns) {
  const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
  all.append(indent, ' ');
  auto used = static_cast<std::int64_t>(indent);
  bool begun = false;  // the row has a word
  for (std::size_t begin = indent; begin < line.size();) {
    const std::size_t word = std::min(line.find_first_not_of(' ', begin), line.size());
    const std::size_t end = std::min(line.find(' ', word), line.size());
    const std::int64_t wide = columns_of(line.substr(begin, end - begin));  // with the blanks before it
    if (begun && used + wide > columns) {
      used = static_cast<std::int64_t>(indent) + 2;
      all.append("\n").append(indent + 2, ' ').append(line.substr(word, end - word));
      used += wide - static_cast<std::int64_t>(word - begin);
    } else {
      all.append(line.substr(begin, end - begin));
      used += wide;
    }
    begun = true;
    begin = end;
  }
}

}  // namespace

std::int64_t message_columns(int descriptor) {
  constexpr std::int64_t kLeast = 40;
  return ::isatty(descriptor) == 1 ? std::max(terminal_columns(descriptor), kLeast) : 0;
}

std::string wrapped_message(std::string_view message, std::int64_t columns) {
  std::string all;
  for (bool more = columns > 0; more;) {
    const std::size_t end = std::min(message.find('\n'), message.size());
    const std::string_view line = message.substr(0, end);
    if (columns_of(line) <= columns)
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
