#pragma once
/// Exercise 14: docs/exercises/14_race.md.

#include "core/step.hpp"

namespace engram::exercises {

/// sums[b] = the sum of the `threads` numbers from x[b * threads] on, for b = 0 .. blocks - 1. One block of the device
/// for each sum; `threads` is a power of two, 1 to 1024. Memory of the step's device.
void block_sums(Step& step, const float* x, float* sums, int blocks, int threads);

}  // namespace engram::exercises
