#pragma once
/// What `engram gradients` says of a run: the reports that GradientReport made and metrics.jsonl keeps.

#include <string>
#include <vector>

#include "core/files/json.hpp"

namespace engram {

struct GradientHistory {
  std::string run;
  std::vector<nlohmann::json> reports;  ///< as GradientReport::take() has them, with their steps; at least one
};

/// The newest report: a line for each tensor, and one for each head whose span moves.
std::string table_of(const GradientHistory& history);
/// Lines `step,tensor,mean_norm,largest_norm,clipped_share` of all reports.
std::string csv_of(const GradientHistory& history);
/// All reports.
nlohmann::json json_of(const GradientHistory& history);

}  // namespace engram
