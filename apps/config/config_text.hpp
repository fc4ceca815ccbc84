#pragma once
/// The text of a configuration, key by key: what a TOML file and overrides give, before anything is made of it.

#include <string>
#include <string_view>
#include <vector>

namespace engram {

struct Assignment {
  std::string section, name;  ///< in the words of today
  std::string value;          ///< without the quotes of a string
  bool quoted = false;        ///< it is a string
  std::string from;           ///< for messages: "'run.toml', line 3" or "--set model.width=8"
  bool is_override = false;

  std::string full_name() const { return section.empty() ? name : section + "." + name; }
  /// As it was written, for messages.
  std::string written() const { return quoted ? '"' + value + '"' : value; }
};

/// TOML as far as configurations need it: [section] and key = value, each on a line, with comments. Values are
/// integers, floats, booleans, strings and arrays, which are not looked at. `source` is named in messages. Throws
/// UsageError, with the line, for anything else, for a section that is none and for a key that is given twice.
std::vector<Assignment> read_assignments(std::string_view toml, const std::string& source);

/// Of `section.key=value`, blanks around the parts being allowed. Throws UsageError for anything else.
Assignment read_override(std::string_view written);

/// For messages: bytes that are no text or would move a terminal's cursor as \x1b, and no more than a line of it.
std::string printable(std::string_view text);

}  // namespace engram
