#pragma once
/// One key of a configuration: what it means, and how its member is read and written.

#include <functional>
#include <string>
#include <string_view>

#include "apps/run/config/run_config.hpp"

namespace engram {

struct ConfigKey {
  /// What a run that is continued may do with the key.
  enum class OnResume : unsigned char {
    keep,   ///< another value would be another model or optimiser: refused
    change  ///< allowed, and said
  };

  std::string_view section;  ///< "model"
  std::string_view name;     ///< "width"
  std::string_view meaning;  ///< with the unit
  OnResume on_resume = OnResume::change;
  std::string rule;        ///< what a value must be: "an integer"
  bool is_list = false;    ///< of integers
  bool is_names = false;   ///< a list of names with wildcards
  bool is_choice = false;  ///< a name out of several, in quotes
  bool is_text = false;    ///< any text, in quotes
  /// Of a key without a default: a value for a small model and a short run; else empty.
  std::string_view example = {};
  /// Sets the member; false when the text is no such value.
  std::function<bool(RunConfig&, std::string_view written)> read;
  /// The member as TOML.
  std::function<std::string(const RunConfig&)> write;

  std::string full_name() const { return std::string(section) + "." + std::string(name); }
};

}  // namespace engram
