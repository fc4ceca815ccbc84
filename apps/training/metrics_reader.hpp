#pragma once
/// Reads a run's metrics.jsonl (metrics_log.hpp).

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

namespace engram {

/// The lines of one event, in the order of steps: what a resumed run repeated is there once, a torn last line is left
/// out. Throws FileError, beginning with `reader`, when the file cannot be read or another line is no report of this
/// program.
std::vector<nlohmann::json> read_metrics(const std::filesystem::path& metrics_file, std::string_view event,
                                         std::string_view reader);

}  // namespace engram
