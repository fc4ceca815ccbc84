#include "apps/terminal/fitted_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "apps/data/text/utf8.hpp"
#include "apps/terminal/terminal.hpp"

namespace engram {
namespace {

/// Names of files may be any bytes.
std::string printable(std::string text) {
  for (std::size_t at = 0; (at += data::find_invalid_utf8(std::string_view(text).substr(at))) < text.size();)
    text[at] = '?';
  // U+0080 to U+009F are controls too, two bytes of UTF-8.
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\xc2' && static_cast<unsigned char>(text[i + 1]) < 0xa0) text.replace(i, 2, "?");
    if (static_cast<unsigned char>(text[i]) < 0x20 || text[i] == 0x7f) text[i] = '?';
  }
  return text;
}

std::int64_t columns_of_part(const LinePart& part) {
  std::int64_t columns = 0;
  for (const std::string* word : {&part.label, &part.value, &part.unit})
    if (!word->empty()) columns += columns_of(*word) + (columns > 0 ? 1 : 0);
  return columns;
}

std::string dim(const std::string& text, bool colours) { return colours ? "\x1b[2m" + text + "\x1b[0m" : text; }

std::string text_of_part(const LinePart& part, bool colours) {
  std::string line = part.label.empty() ? "" : dim(part.label, colours) + " ";
  line += part.value;
  return part.unit.empty() ? line : line + " " + dim(part.unit, colours);
}

/// A blank before each but the first.
std::int64_t columns_of_parts(std::span<const LinePart> parts) {
  std::int64_t columns = 0;
  for (const LinePart& part : parts) columns += columns_of_part(part) + (columns > 0 ? 1 : 0);
  return columns;
}

std::string beginning(std::string text, std::int64_t columns) {
  while (!text.empty() && columns_of(text) > columns) {
    while (!data::is_utf8_start(text.back())) text.pop_back();
    text.pop_back();
  }
  return text;
}

/// With a blank behind it; nothing where there is no room.
std::string bar(double share, std::int64_t columns) {
  constexpr std::int64_t kLeast = 8, kMost = 20, kAround = 3;
  const std::int64_t inner = std::min(columns - kAround, kMost);
  if (inner < kLeast) return "";
  const auto done = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(inner));
  return "[" + std::string(done, '=') + std::string(static_cast<std::size_t>(inner) - done, ' ') + "] ";
}

}  // namespace

std::string fitted_line(std::span<const LinePart> parts, const LineStyle& style) {
  if (parts.empty() || style.columns < 1) return "";
  std::vector<LinePart> all;
  for (const LinePart& part : parts)
    all.push_back({printable(part.label), printable(part.value), printable(part.unit), part.ahead});
  const std::size_t essential = std::clamp<std::size_t>(style.essential, 1, all.size());
  if (columns_of_parts(std::span(all).first(essential)) > style.columns)
    all.front() = {"", beginning(all.front().value, style.columns)};

  std::int64_t columns = columns_of_part(all.front());
  std::string line = text_of_part(all.front(), style.colours);
  bool complete = true;
  for (const LinePart& part : std::span(all).subspan(1)) {
    const std::int64_t more = 1 + columns_of_part(part);
    complete = columns + more <= style.columns;
    if (!complete) break;
    columns += more;
    const std::string text = text_of_part(part, style.colours);
    line = part.ahead ? text + " " + line : line + " " + text;
  }
  return complete && style.share ? bar(*style.share, style.columns - columns) + line : line;
}

std::string clock_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::clamp(seconds, 0.0, 3.6e8));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace engram
