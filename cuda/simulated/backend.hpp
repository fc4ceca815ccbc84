#pragma once
/// The device `simulated`: the CUDA kernels, compiled by the host compiler, on host memory.

#include <cstddef>

#include "core/backend.hpp"
#include "cuda/simulated/engine.hpp"

namespace engram::simulated {

/// The engine of a backend of kind `simulated`; throws DeviceError for another.
Engine& engine_of(Backend& backend);

/// A card's memory has an end; that of a backend of kind `simulated` only where a test sets one, in bytes. It holds
/// what is reserved, and 4 KiB for every launch of a captured step.
std::size_t& memory_limit_of(Backend& backend);

/// The shared memory that a block can have, in bytes: of the largest card, or what a test sets.
std::size_t& shared_limit_of(Backend& backend);

/// Whether kernels may have products by warpgroups (cuda/warpgroup.cuh), as cards of compute capability 9.0 do: at
/// first what cuda/warpgroup_choice.hpp says.
bool& warpgroup_products_of(Backend& backend);
/// How many there were so far.
std::int64_t warpgroup_product_count(Backend& backend);

/// Blocks that sums over all queries are shared out to (cuda/launch_size.hpp), or what a test sets: so few that blocks
/// have several tiles of queries, as those of large models have.
int& share_blocks_of(Backend& backend);

/// The text of ENGRAM_SIMULATED_ORDER: forward, reversed, shuffled or shuffled:SEED. Throws UsageError on another.
RunOptions parse_run_options(const char* text);

}  // namespace engram::simulated
