#include "apps/terminal/wrapped_text.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "core/terminal_columns.hpp"

namespace engram {
namespace {

/// How much of a part that is too wide goes on a line.
std::size_t cut_of(std::string_view part, std::size_t width) {
  const std::size_t separator = part.substr(0, width).find_last_of(",/;|");
  return separator == std::string_view::npos || separator == 0 ? width : separator + 1;
}

}  // namespace

std::size_t output_columns() {
  constexpr std::int64_t kLeast = 40;
  return static_cast<std::size_t>(std::max(terminal_columns(STDOUT_FILENO), kLeast));
}

std::vector<std::string> wrapped_parts(const std::vector<std::string>& parts, std::size_t width, std::size_t less) {
  std::vector<std::string> lines{""};
  const auto room = [&] { return lines.size() == 1 ? width : width - less; };
  for (std::string_view part : parts) {
    if (!lines.back().empty() && lines.back().size() + 1 + part.size() > room()) lines.emplace_back();
    for (; part.size() > room(); lines.emplace_back()) {
      const std::size_t cut = cut_of(part, room());
      lines.back() = part.substr(0, cut);
      part.remove_prefix(cut);
    }
    if (!lines.back().empty()) lines.back() += ' ';
    lines.back() += part;
  }
  return lines;
}

std::vector<std::string> wrapped_text(std::string_view written, std::size_t width) {
  std::vector<std::string> lines;
  for (bool more = true; more;) {
    const std::size_t end = std::min(written.find('\n'), written.size());
    std::vector<std::string> words{""};
    for (const char byte : written.substr(0, end)) {
      if (byte != ' ')
        words.back() += byte;
      else if (!words.back().empty())
        words.emplace_back();
    }
    if (words.back().empty()) words.pop_back();
    for (std::string& line : wrapped_parts(words, width)) lines.push_back(std::move(line));
    more = end < written.size();
    written.remove_prefix(std::min(end + 1, written.size()));
  }
  return lines;
}

std::string hanging(const std::vector<std::string>& lines, std::size_t indent) {
  std::string all;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0 && !lines[i].empty()) all.append(indent, ' ');
    all += lines[i] + '\n';
  }
  return all;
}

}  // namespace engram
