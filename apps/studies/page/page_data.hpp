#pragma once
/// What the script of a page draws, as JSON: columns of the logs, and what was found in checkpoints.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "apps/studies/page/page_run.hpp"

namespace engram {

/// Of a run's log and configuration: all that changes while it is trained.
nlohmann::json log_json(const PageRun& run, const RunSummary& summary);
/// Of its checkpoint; an empty object where there is none.
nlohmann::json study_json(const PageRun& run);

}  // namespace engram
