#pragma once
/// What a person should know about a configuration: doubtful settings, and how it differs from another one.

#include <string>
#include <vector>

#include "apps/run/config/run_config.hpp"

namespace engram {

/// Settings that are allowed but seldom meant, one sentence each.
std::vector<std::string> config_warnings(const RunConfig& config);

struct ConfigDifference {
  std::string key;            ///< "training.batch"
  std::string before, after;  ///< as TOML
  bool refused = false;       ///< a run cannot be continued with it
};
/// Key by key, in the order of the table.
std::vector<ConfigDifference> config_differences(const RunConfig& before, const RunConfig& after);

}  // namespace engram
