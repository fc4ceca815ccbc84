#pragma once
/// TOML 1.0, by toml++, as the keys that a configuration is made of. What they mean is not looked at here.

#include <string>
#include <string_view>
#include <vector>

namespace engram {

/// A key at the top or in a table at the top.
struct TomlEntry {
  enum class Kind : unsigned char {
    string,  ///< `value` is what it says
    other,   ///< `value` is TOML: integers in decimal digits, all other numbers, dates and times as they are written
    table    ///< of keys, or of other tables; no `value`
  };

  std::string section, name;  ///< `section` is empty at the top
  Kind kind = Kind::other;
  std::string value;
  std::string from;  ///< for messages: "'run.toml', line 3, column 7", where the key begins
};

/// In the order of the text, with tables before what is in them. Tables in tables are one entry each. Integers beyond
/// 64 bits are read where there is one of them. `source` is named in messages. Throws UsageError, with line and column,
/// for what is no TOML, for keys that are given twice, and for a text that no configuration is.
std::vector<TomlEntry> read_toml(std::string_view written, const std::string& source);

}  // namespace engram
