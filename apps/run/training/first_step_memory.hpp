#pragma once
/// Memory of steps that is taken before the first one.

#include "apps/run/training/session.hpp"

namespace engram {

/// Gives the arena one slab that all steps fit into, whose size a counted run finds (count_step_memory): else the first
/// step takes slab after slab, up to half as much again as it needs. For runs on the CPU, whose steps can be
/// counted beside the device; not where spans have been learned, as a count begins with new ones. What is missing in
/// the end, the arena takes as it goes. Leaves errors to the first step. Not within a step.
void take_memory_of_steps(TrainingSession& session);

}  // namespace engram
