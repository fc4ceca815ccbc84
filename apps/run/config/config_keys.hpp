#pragma once
/// The one table of configuration keys: reading, writing, help, suggestions and the comparison of two configurations
/// come from it.

#include <span>
#include <string>
#include <string_view>

#include "apps/run/config/config_key.hpp"

namespace engram {

/// Of runs with models of this family, in the order in which they are written.
std::span<const ConfigKey> config_keys(ModelFamily family);
/// nullptr when there is none.
const ConfigKey* find_config_key(ModelFamily family, std::string_view section, std::string_view name);
/// The key whose name is the nearest by edit distance, those of `section` preferred.
const ConfigKey& nearest_config_key(ModelFamily family, std::string_view section, std::string_view name);

/// Whether the configuration, whose other keys have been read, must give this one.
bool is_required(const ConfigKey& key, const RunConfig& config);

/// The names that a choice is one of, "a | b | c"; empty for other keys.
std::string choices_of(const ConfigKey& key);

/// All keys of a family with default, rule and meaning: for `engram keys`. It is a configuration itself: keys without a
/// default have their examples.
std::string config_help(ModelFamily family);

}  // namespace engram
