#include "apps/config/config_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "apps/config/config_keys.hpp"
#include "apps/data/utf8.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

std::string_view trimmed(std::string_view part) {
  constexpr std::string_view kSpace = " \t\r";
  const std::size_t first = part.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return part.substr(first, part.find_last_not_of(kSpace) - first + 1);
}

/// What is inside the quotes of a string; nothing where it is none.
std::optional<std::string_view> unquoted(std::string_view written) {
  if (written.size() < 2 || written.front() != written.back()) return std::nullopt;
  if (written.front() != '"' && written.front() != '\'') return std::nullopt;
  const std::string_view inside = written.substr(1, written.size() - 2);
  if (inside.find(written.front()) != std::string_view::npos) return std::nullopt;
  return inside;
}

std::string_view without_comment(std::string_view line) {
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char byte = line[i];
    if (quote != 0)
      quote = byte == quote ? '\0' : quote;
    else if (byte == '"' || byte == '\'')
      quote = byte;
    else if (byte == '#')
      return line.substr(0, i);
  }
  return line;
}

void check_section(std::string_view section, const std::string& place) {
  const auto keys = config_keys(ModelFamily::transformer_xl);  // one of those that have all sections
  if (std::ranges::any_of(keys, [&](const ConfigKey& key) { return key.section == section; })) return;
  const auto nearest =
      std::ranges::min_element(keys, {}, [&](const ConfigKey& key) { return edit_distance(section, key.section); });
  throw UsageError(text("config: [", printable(section), "] is no section, the nearest one is [", nearest->section,
                        "]\n  in ", place));
}

Assignment assignment_of(std::string_view section, std::string_view name, std::string_view value, std::string from) {
  Assignment made{.section = std::string(section), .name = std::string(name), .value = {}, .from = std::move(from)};
  const std::optional<std::string_view> inside = unquoted(value);
  made.quoted = inside.has_value();
  made.value = inside.value_or(value);
  // A key of older versions.
  if (made.section == "model" && made.name == "adaptive_span" && (made.value == "true" || made.value == "false")) {
    made.name = "span";
    made.value = made.value == "true" ? "adaptive" : "fixed";
  }
  return made;
}

/// The option of the command line that is short for an override of this key; empty: there is none.
std::string_view short_option(std::string_view key) {
  constexpr std::pair<std::string_view, std::string_view> kOptions[] = {
      {"schedule.steps", "--steps"}, {"training.seed", "--seed"}, {"training.products", "--dtype"}};
  for (const auto& [name, option] : kOptions)
    if (name == key) return option;
  return {};
}

}  // namespace

std::vector<Assignment> read_assignments(std::string_view toml, const std::string& source) {
  std::vector<Assignment> found;
  std::set<std::string> seen;
  std::string_view section;
  for (std::int64_t number = 1; !toml.empty(); ++number) {
    const std::size_t end = std::min(toml.find('\n'), toml.size());
    const std::string_view content = trimmed(without_comment(toml.substr(0, end)));
    toml.remove_prefix(std::min(end + 1, toml.size()));
    if (content.empty()) continue;
    const std::string place = text(source, ", line ", number);
    if (content.front() == '[' && content.back() == ']' && content.size() > 2) {
      section = trimmed(content.substr(1, content.size() - 2));
      check_section(section, place);
      continue;
    }
    const std::size_t equals = content.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == content.size())
      throw UsageError(
          text("config: every line must be [section] or key = value, got '", printable(content), "'\n  in ", place));
    std::string_view key = trimmed(content.substr(0, equals)), inside = section;
    key = unquoted(key).value_or(key);
    if (const std::size_t dot = key.find('.'); section.empty() && dot != std::string_view::npos) {
      inside = trimmed(key.substr(0, dot));
      key = trimmed(key.substr(dot + 1));
    }
    Assignment assignment = assignment_of(inside, key, trimmed(content.substr(equals + 1)), place);
    if (!seen.insert(assignment.full_name()).second)
      throw UsageError(
          text("config: '", printable(assignment.full_name()), "' must be given once, got it again\n  in ", place));
    found.push_back(std::move(assignment));
  }
  return found;
}

Assignment read_override(std::string_view written) {
  const std::size_t equals = written.find('=');
  const std::size_t dot = written.find('.');
  if (equals == std::string_view::npos || dot == std::string_view::npos || dot > equals)
    throw UsageError(text("--set must be section.key=value, got '", printable(written), "'"));
  Assignment made = assignment_of(trimmed(written.substr(0, dot)), trimmed(written.substr(dot + 1, equals - dot - 1)),
                                  trimmed(written.substr(equals + 1)), text("--set ", printable(written)));
  const std::string_view option = short_option(made.full_name());
  if (!option.empty()) made.from += text(" (or ", option, ")");
  made.is_override = true;
  return made;
}

std::string printable(std::string_view written) {
  constexpr std::size_t kMost = 200;
  const bool cut = written.size() > kMost;
  if (cut) written = written.substr(0, kMost);
  std::string shown;
  const auto escape = [&shown](char byte) { shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte)); };
  std::size_t invalid = data::find_invalid_utf8(written);
  for (std::size_t i = 0; i < written.size(); ++i) {
    const auto byte = static_cast<unsigned char>(written[i]);
    if (i == invalid) {
      escape(written[i]);
      invalid = i + 1 + data::find_invalid_utf8(written.substr(i + 1));
    } else if (byte < ' ' || byte == 0x7f) {
      escape(written[i]);
    } else if (byte == 0xc2 && static_cast<unsigned char>(written[i + 1]) < 0xa0) {  // the other control characters
      escape(written[i]);
      escape(written[++i]);
    } else {
      shown += written[i];
    }
  }
  return cut ? shown + "..." : shown;
}

}  // namespace engram
