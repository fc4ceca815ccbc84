#pragma once
/// Whether the machine could hold a run at all, which is known before any memory is taken.

#include <cstdint>

#include "apps/run/config/run_config.hpp"

namespace engram {

/// Bytes of memory and swap; 0 where the system does not say.
std::int64_t machine_memory_bytes();

/// Bytes of addresses that this process may still take (`ulimit -v` less what it has); 0 where there is no limit.
std::int64_t process_memory_bytes();

/// Throws OutOfMemory, with both numbers, when what `ranks_here` of `ranks` ranks keep from step to step (parameters,
/// gradients, their parts of the optimiser's state, sums over their pieces, what arrives from other ranks) is more than
/// `available` bytes, or that of one of them more than `of_process` (0: not known). `config` must be resolved.
void require_machine_memory(const RunConfig& config, int ranks = 1, int ranks_here = 1,
                            std::int64_t available = machine_memory_bytes(),
                            std::int64_t of_process = process_memory_bytes());

}  // namespace engram
