#pragma once
/// Reading metrics.jsonl of a run (metrics_log.hpp).

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace engram {

/// Hands over every whole line, in order, as it stands in the file: what a resumed run took back is not left out. A
/// torn last line is. Throws FileError when the file cannot be read, and naming the line when one is no JSON or `take`
/// throws an exception of the JSON library.
void read_metrics(const std::filesystem::path& metrics_file, const std::function<void(const nlohmann::json&)>& take);

/// The lines of one event, in the order of steps: what a resumed run took back and repeated is there once.
std::vector<nlohmann::json> read_reports(const std::filesystem::path& metrics_file, std::string_view event);

/// The "seconds" of training up to a step, as the last report up to there has them; 0 where none has.
double training_seconds(const std::filesystem::path& metrics_file, std::int64_t step);

/// How the last process of a run left it.
struct RunEnd {
  std::string event;                        ///< of the last line that is no report: start, resume, diverged, end ...
  std::int64_t step = 0;                    ///< of the last line
  std::string reason;                       ///< of a divergence
  std::optional<double> tokens_per_second;  ///< of training, over the last process that reported
};
RunEnd read_run_end(const std::filesystem::path& metrics_file);

}  // namespace engram
