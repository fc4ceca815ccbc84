#pragma once
/// The text of a configuration, key by key: what a TOML file and overrides give, before anything is made of it.

#include <string>
#include <string_view>
#include <vector>

namespace engram {

struct Assignment {
  std::string section, name;  ///< in the words of today
  std::string value;          ///< what a string says; else TOML, integers being in decimal digits
  bool quoted = false;        ///< it is a string
  std::string from;           ///< for messages: "'run.toml', line 3, column 7" or "--set model.width=8"
  bool is_override = false;

  /// With what is no bare word in quotes.
  std::string full_name() const;
  /// As TOML has it, for messages.
  std::string written() const { return quoted ? '"' + value + '"' : value; }
};

/// Of a file in TOML 1.0, in its order. Values are not looked at. `source` is named in messages. Throws UsageError,
/// with line and column, for what is no TOML, for a section that is none, for a table of keys in place of a value and
/// for a key that is given twice.
std::vector<Assignment> read_assignments(std::string_view toml, const std::string& source);

/// Of `section.key=value`, blanks around the parts being allowed. The value is TOML, or else what it says: a word, a
/// text, integers with commas. Throws UsageError for anything else.
Assignment read_override(std::string_view written);

}  // namespace engram
