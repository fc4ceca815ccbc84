#pragma once
/// Relative effective context lengths of a group of runs for people and programs.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/studies/context/position_losses.hpp"
#include "apps/studies/context/relative_context.hpp"

namespace engram {

struct RelativeReport {
  std::string data, split;  ///< what was read
  ContextMethod method = ContextMethod::exact;
  std::uint64_t seed = 0;  ///< of the positions
  double threshold = 0;
  std::vector<double> shares;  ///< r
  std::vector<StudiedRun> runs;
  ContextLosses table;  ///< of these runs
};

/// The report's figure for a run: the length of the procedure, but at most what the model reads, as the last step of a
/// model that does not read farther ends there.
std::int64_t effective_length(const StudiedRun& run, const RelativeContext& context);

/// A line for each run and a column for each share; ">=" before a length that is only known to be reached. Then the
/// mean losses by length.
std::string table_of(const RelativeReport& report);
/// run,share,length,next_length,mean_loss,next_mean_loss,relative_loss,next_relative_loss,gain,recl,at_least: a line
/// for each run, share and step from one length to the next.
std::string csv_of(const RelativeReport& report);
nlohmann::json json_of(const RelativeReport& report);

}  // namespace engram
