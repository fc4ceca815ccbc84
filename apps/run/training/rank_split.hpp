#pragma once
/// In how many pieces several ranks compute a batch.

#include <cstdint>

#include "apps/run/config/run_config.hpp"

namespace engram {

/// training.split for so many ranks. Every rank has as many pieces, a power of two, so that gradients are added up in
/// the order in which one rank would add them, and the numbers do not depend on the ranks. Where the configuration's
/// split is none of that, it is the next larger one. One rank: the configuration's. Throws UsageError where the batch
/// is no multiple of it.
std::int64_t split_for_ranks(const RunConfig& config, int ranks);

}  // namespace engram
