#pragma once
/// The one table of configuration keys: reading, writing, help, suggestions and the comparison of two configurations
/// come from it.

#include <functional>
#include <span>
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
  std::string rule;  ///< what a value must be: "an integer"
  bool is_list = false;
  bool is_choice = false;  ///< a name out of several, in quotes
  /// Of a key without a default: a value for a small model and a short run; else empty.
  std::string_view example = {};
  /// Sets the member; false when the text is no such value.
  std::function<bool(RunConfig&, std::string_view written)> read;
  /// The member as TOML.
  std::function<std::string(const RunConfig&)> write;

  /// Whether the configuration, whose other keys have been read, must give this one.
  bool is_required(const RunConfig& config) const;
  std::string full_name() const { return std::string(section) + "." + std::string(name); }
};

/// Of runs with models of this family, in the order in which they are written.
std::span<const ConfigKey> config_keys(ModelFamily family);
/// nullptr when there is none.
const ConfigKey* find_config_key(ModelFamily family, std::string_view section, std::string_view name);
/// The key whose name is the nearest by edit distance, those of `section` preferred.
const ConfigKey& nearest_config_key(ModelFamily family, std::string_view section, std::string_view name);

/// The names that a choice is one of, "a | b | c"; empty for other keys.
std::string choices_of(const ConfigKey& key);

/// All keys of a family with default, rule and meaning: for `engram keys`. It is a configuration itself: keys without a
/// default have their examples.
std::string config_help(ModelFamily family);

/// The number of insertions, deletions and replacements of single characters, and of swaps of two neighbours, that turn
/// one text into the other.
std::size_t edit_distance(std::string_view from, std::string_view to);

/// Whether `known` may have been meant by `given`: there is an error in every three letters at most.
bool is_near(std::string_view given, std::string_view known);

}  // namespace engram
