#pragma once
/// Values that change with every step and that kernels read from device memory, so that a captured step sees
/// new ones at each replay.

#include <cstdint>

namespace engram {

struct StepScalars {
  std::uint64_t step = 0;   ///< counts optimiser steps, from 0; part of the random counters
  std::uint32_t piece = 0;  ///< which piece of an accumulated batch, from 0; part of the random counters
  /// Of this step, before clipping. Update rules take it as it is: where parameters are f32, the trainer has rounded it
  /// to f32.
  double learning_rate = 0;
};

}  // namespace engram
