#pragma once
/// How the spans changed while a run was trained: the reports of its metrics.jsonl.

#include <cstdint>
#include <filesystem>
#include <vector>

namespace engram {

/// Positions, at one report.
struct SpanMoment {
  std::int64_t step = 0;
  double mean = 0;                               ///< that a head sees, over layers and heads
  double longest = 0;                            ///< of any head
  double released_mean = 0;                      ///< the average of the released models (head_spans.hpp)
  std::vector<std::vector<std::int64_t>> heads;  ///< that each head sees, by layer; empty in the first runs
  /// How often a layer's cache was too short since step 0; below 0: not recorded.
  std::int64_t cache_shortfalls = -1;
};

/// In the order of steps; what a resumed run repeated, or one that was started again, is there once. A torn last line
/// is left out. Throws FileError when the file cannot be read, or another line is no report of this program.
std::vector<SpanMoment> read_span_history(const std::filesystem::path& metrics_file);

/// The newest count of cache shortfalls that a report has, up to the step; below 0: not recorded.
std::int64_t shortfalls_at(const std::vector<SpanMoment>& history, std::int64_t step);

}  // namespace engram
