#pragma once
/// What of a run its ranks' memory and messages depend on.

#include "apps/run/config/run_config.hpp"
#include "apps/run/cost/rank_memory.hpp"

namespace engram {

/// Of a configuration, cut into pieces as training.split says.
RankSetting rank_setting(const RunConfig& config);

}  // namespace engram
