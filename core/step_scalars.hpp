#pragma once
/// Values that change with every step and that kernels read from device memory, so that a captured step sees
/// new ones at each replay.

#include <cstdint>

namespace engram {

struct StepScalars {
  std::uint64_t step = 0;   ///< counts optimiser steps, from 0; part of the random counters
  std::uint32_t piece = 0;  ///< which piece of an accumulated batch, from 0; part of the random counters
  float learning_rate = 0;  ///< of this step, before clipping
};

}  // namespace engram
