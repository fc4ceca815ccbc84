#pragma once
/// The device `simulated`: the CUDA kernels, compiled by the host compiler, on host memory.

#include "core/backend.hpp"
#include "cuda/simulated/engine.hpp"

namespace engram::simulated {

/// The engine of a backend of kind `simulated`; throws DeviceError for another.
Engine& engine_of(Backend& backend);

/// The text of ENGRAM_SIMULATED_ORDER: forward, reversed, shuffled or shuffled:SEED. Throws UsageError on another.
RunOptions parse_run_options(const char* text);

}  // namespace engram::simulated
