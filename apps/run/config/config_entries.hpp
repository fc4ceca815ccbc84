#pragma once
/// The keys of a written configuration, without a look at what they mean.

#include <string>
#include <utility>
#include <vector>

namespace engram {

/// "model.width" and its value as TOML, in the order of the file: of what to_toml() has written, a key on each line.
std::vector<std::pair<std::string, std::string>> config_entries(const std::string& toml);

}  // namespace engram
