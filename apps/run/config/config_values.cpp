#include "apps/run/config/config_values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace engram {

bool read_list(std::string_view written, std::vector<std::int64_t>& value) {
  const auto trim = [](std::string_view part) {
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    return part;
  };
  written = trim(written);
  if (written.starts_with('[') != written.ends_with(']')) return false;
  if (written.starts_with('[')) written = trim(written.substr(1, written.size() - 2));
  std::vector<std::int64_t> parsed;
  while (!written.empty()) {
    const std::size_t comma = written.find(',');
    std::int64_t number = 0;
    if (!read_value(trim(written.substr(0, comma)), number)) return false;
    parsed.push_back(number);
    if (comma == std::string_view::npos) break;
    written = trim(written.substr(comma + 1));
    if (written.empty()) return false;  // something must follow a comma
  }
  value = std::move(parsed);
  return true;
}

std::string toml_list(const std::vector<std::int64_t>& values) { return fmt::format("[{}]", fmt::join(values, ", ")); }

std::string toml_text(std::string_view value) {
  constexpr std::pair<char, char> kShort[] = {{'"', '"'},  {'\\', '\\'}, {'\b', 'b'}, {'\t', 't'},
                                              {'\n', 'n'}, {'\f', 'f'},  {'\r', 'r'}};
  std::string written = "\"";
  for (std::size_t i = 0; i < value.size(); ++i) {
    const auto byte = static_cast<unsigned char>(value[i]);
    const auto found = std::ranges::find(kShort, value[i], &std::pair<char, char>::first);
    // U+0080 to U+009F, in UTF-8 C2 80 to C2 9F, are control characters of terminals too.
    const bool is_late_control =
        byte == 0xc2 && i + 1 < value.size() && static_cast<unsigned char>(value[i + 1]) < 0xa0;
    if (found != std::end(kShort))
      written += {'\\', found->second};
    else if (byte < ' ' || byte == 0x7f)
      written += fmt::format("\\u{:04X}", byte);
    else if (is_late_control)
      written += fmt::format("\\u{:04X}", static_cast<unsigned char>(value[++i]));
    else
      written += value[i];
  }
  return written + '"';
}

std::string toml_number(double value) {
  std::string written = fmt::format("{}", value);
  if (written.find_first_of(".en") == std::string::npos) written += ".0";
  return written;
}

}  // namespace engram
