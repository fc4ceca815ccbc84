#pragma once
/// Keys of runs' configurations and their values, as their files have them.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace engram {

/// A key, "model.slots" or "slots", and the value that runs must have.
using KeyValue = std::pair<std::string, std::string>;

/// "model.slots" and its value without quotes, in the order of the run's config.toml; empty where there is none.
std::vector<KeyValue> read_settings(const std::filesystem::path& run);

/// The number that a text is, if it is one.
std::optional<double> number_in(const std::string& written);
/// Whether two values are one: as texts, or as numbers.
bool same_value(const std::string& left, const std::string& right);

}  // namespace engram
