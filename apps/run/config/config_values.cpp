#include "apps/run/config/config_values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace engram {
namespace {

std::string_view without_spaces(std::string_view part) {
  while (part.starts_with(' ')) part.remove_prefix(1);
  while (part.ends_with(' ')) part.remove_suffix(1);
  return part;
}

/// What stands between the commas of a list without its brackets; false when one is empty.
bool split_list(std::string_view written, std::vector<std::string_view>& parts) {
  while (!written.empty()) {
    const std::size_t comma = written.find(',');
    parts.push_back(without_spaces(written.substr(0, comma)));
    if (parts.back().empty()) return false;
    if (comma == std::string_view::npos) break;
    written = without_spaces(written.substr(comma + 1));
    if (written.empty()) return false;  // something must follow a comma
  }
  return true;
}

std::string_view unquoted_name(std::string_view part) {
  const bool quoted = part.size() >= 2 && part.front() == part.back() && (part.front() == '"' || part.front() == '\'');
  return quoted ? part.substr(1, part.size() - 2) : part;
}

}  // namespace

bool read_list(std::string_view written, std::vector<std::int64_t>& value) {
  written = without_spaces(written);
  if (written.starts_with('[') != written.ends_with(']')) return false;
  if (written.starts_with('[')) written = without_spaces(written.substr(1, written.size() - 2));
  std::vector<std::string_view> parts;
  if (!split_list(written, parts)) return false;
  std::vector<std::int64_t> parsed(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (!read_value(parts[i], parsed[i])) return false;
  value = std::move(parsed);
  return true;
}

bool read_names(std::string_view written, std::vector<std::string>& value) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-*?[]!";
  written = without_spaces(written);
  // Without quotes a bracket at an end may be that of a wildcard: layers.[01].*
  const std::string_view inside = written.starts_with('[') ? without_spaces(written.substr(1)) : std::string_view();
  if (inside == "]") written = {};
  if (inside.starts_with('"') || inside.starts_with('\'')) {
    if (!written.ends_with(']')) return false;
    written = without_spaces(written.substr(1, written.size() - 2));
  }
  std::vector<std::string_view> parts;
  if (!split_list(written, parts)) return false;
  std::vector<std::string> parsed;
  for (const std::string_view part : parts) {
    const std::string_view name = unquoted_name(part);
    if (name.empty() || name.find_first_not_of(kLetters) != std::string_view::npos) return false;
    parsed.emplace_back(name);
  }
  value = std::move(parsed);
  return true;
}

std::string toml_names(const std::vector<std::string>& values) {
  return values.empty() ? "[]" : fmt::format("[\"{}\"]", fmt::join(values, "\", \""));
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
