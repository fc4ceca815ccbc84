#pragma once
/// A training run's configuration as a TOML file, with overrides of the command line.

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "apps/run/config/run_config.hpp"

namespace engram {

/// Reads a TOML file, or one that comes with the program (shipped_configs.hpp), and applies `overrides`, each
/// `section.key=value`. An unknown or misspelt key, a wrong type or an unreadable file is one UsageError or FileError
/// that names it, with the nearest valid key; so are keys without a default that are not given, all in one. Calls
/// check(), and says which of the file and the overrides it refuses.
RunConfig load_run_config(const std::filesystem::path& file, const std::vector<std::string>& overrides = {});
/// Reads a configuration from text, `source` being named in errors: a config.toml inside a checkpoint.
RunConfig parse_run_config(const std::string& toml, const std::string& source,
                           const std::vector<std::string>& overrides = {});
/// Reads a configuration of the model alone, as another program may write it: where [schedule] gives nothing, it
/// has some value for what only training needs and has no default.
RunConfig parse_model_config(const std::string& toml, const std::string& source);
/// The keys that they give, as "section.key", whatever their values. Throws UsageError as parse_run_config does for
/// what cannot be read, but not for keys and values that are wrong.
std::set<std::string> given_keys(const std::string& toml, const std::string& source,
                                 const std::vector<std::string>& overrides = {});
/// Every key with its value, in TOML that load_run_config reads back to an equal struct.
std::string to_toml(const RunConfig& config);

}  // namespace engram
