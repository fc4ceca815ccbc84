#include "apps/run/config/config_text.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "apps/run/config/config_keys.hpp"
#include "apps/run/config/config_toml.hpp"
#include "apps/run/config/printable.hpp"
#include "apps/terminal/edit_distance.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

std::string_view trimmed(std::string_view part) {
  constexpr std::string_view kSpace = " \t\r";
  const std::size_t first = part.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return part.substr(first, part.find_last_not_of(kSpace) - first + 1);
}

/// What a string of TOML says; nothing where it is none.
std::optional<std::string> unquoted(std::string_view written) {
  if (written.size() < 2 || written.front() != written.back()) return std::nullopt;
  if (written.front() != '"' && written.front() != '\'') return std::nullopt;
  try {
    const std::vector<TomlEntry> entries = read_toml(text("value = ", written), "");
    if (entries.size() == 1 && entries[0].kind == TomlEntry::Kind::string) return entries[0].value;
  } catch (const UsageError&) {  // then it is not
  }
  return std::nullopt;
}

/// As TOML has a part of a key: in quotes, unless it is a bare word.
std::string key_part(std::string_view name) {
  constexpr std::string_view kBare = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  const bool is_bare = !name.empty() && name.find_first_not_of(kBare) == std::string_view::npos;
  return is_bare ? std::string(name) : text("\"", name, "\"");
}

/// At the top there are the sections alone.
void check_section(const TomlEntry& entry) {
  const bool is_table = entry.kind == TomlEntry::Kind::table;
  const auto keys = config_keys(ModelFamily::transformer_xl);  // one of those that have all sections
  const bool is_section = std::ranges::any_of(keys, [&](const ConfigKey& key) { return key.section == entry.name; });
  if (is_section && !is_table)
    throw UsageError(text("config: [", entry.name, "] must be a section of keys, got '", printable(entry.value),
                          "'\n  in ", entry.from));
  if (is_section || !is_table) return;  // what is no key is refused with all others
  const std::string_view name = compared_part(entry.name);
  const auto nearest =
      std::ranges::min_element(keys, {}, [&](const ConfigKey& key) { return edit_distance(name, key.section); });
  throw UsageError(text("config: [", printable(key_part(entry.name)), "] is no section, the nearest one is [",
                        nearest->section, "]\n  in ", entry.from));
}

/// A key of older versions in the words of today.
void translate(Assignment& assignment) {
  if (assignment.full_name() != "model.adaptive_span") return;
  if (assignment.value != "true" && assignment.value != "false") return;
  assignment.name = "span";
  assignment.value = assignment.value == "true" ? "adaptive" : "fixed";
}

/// The option of the command line that is short for an override of this key; empty: there is none.
std::string_view short_option(std::string_view key) {
  constexpr std::pair<std::string_view, std::string_view> kOptions[] = {{"schedule.steps", "--steps"},
                                                                        {"training.seed", "--seed"},
                                                                        {"training.products", "--dtype"},
                                                                        {"training.freeze", "--freeze"}};
  for (const auto& [name, option] : kOptions)
    if (name == key) return option;
  return {};
}

}  // namespace

std::string Assignment::full_name() const { return (section.empty() ? "" : key_part(section) + ".") + key_part(name); }

std::vector<Assignment> read_assignments(std::string_view toml, const std::string& source) {
  std::vector<Assignment> found;
  std::set<std::string> seen;
  for (TomlEntry& entry : read_toml(toml, source)) {
    const bool is_table = entry.kind == TomlEntry::Kind::table;
    if (entry.section.empty()) check_section(entry);
    if (entry.section.empty() && is_table) continue;
    Assignment made{.section = std::move(entry.section), .name = std::move(entry.name), .from = std::move(entry.from)};
    made.value = std::move(entry.value);
    made.quoted = entry.kind == TomlEntry::Kind::string;
    translate(made);
    const std::string name = printable(made.full_name());
    if (is_table)
      throw UsageError(text("config: '", name, "' must have a value, got a table of keys\n  in ", made.from,
                            "\n  keys are section.key"));
    // Keys of old and new words may be one.
    if (!seen.insert(made.full_name()).second)
      throw UsageError(text("config: '", name, "' must be given once, got it again\n  in ", made.from));
    found.push_back(std::move(made));
  }
  return found;
}

Assignment read_override(std::string_view written) {
  const std::size_t equals = written.find('=');
  const std::size_t dot = written.find('.');
  if (equals == std::string_view::npos || dot == std::string_view::npos || dot > equals)
    throw UsageError(text("--set must be section.key=value, got '", printable(written), "'"));
  const std::string_view value = trimmed(written.substr(equals + 1));
  const std::optional<std::string> inside = unquoted(value);
  Assignment made{.section = std::string(trimmed(written.substr(0, dot))),
                  .name = std::string(trimmed(written.substr(dot + 1, equals - dot - 1))),
                  .value = inside.value_or(std::string(value)),
                  .quoted = inside.has_value(),
                  .from = text("--set ", printable(written)),
                  .is_override = true};
  translate(made);
  const std::string_view option = short_option(made.full_name());
  if (!option.empty()) made.from += text(" (or ", option, ")");
  return made;
}

}  // namespace engram
