#pragma once
/// Whether the machine could hold a run at all, which is known before any memory is taken.

#include <cstdint>

#include "apps/run/config/run_config.hpp"

namespace engram {

/// Bytes of memory and swap; 0 where the system does not say.
std::int64_t machine_memory_bytes();

/// Throws OutOfMemory, with both numbers, when what one of `ranks` ranks has of a run's parameters, gradients and
/// optimiser state is alone more than `available` bytes (0: not known). `config` must be resolved.
void require_machine_memory(const RunConfig& config, std::int64_t available = machine_memory_bytes(), int ranks = 1);

}  // namespace engram
