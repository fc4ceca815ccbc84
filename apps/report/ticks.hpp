#pragma once
/// Round numbers along an axis. Lists end, whatever the numbers: where neighbours cannot be told apart, and after
/// kMostTicks.

#include <vector>

namespace engram {

inline constexpr int kMostTicks = 100;

/// The smallest of 1, 2 and 5 times a power of ten that parts `range` (above 0) in at most `count` steps.
double tick_step(double range, int count);
/// Multiples of `step` from `least` to `most`, rising. `near`: by how much of a step they may lie outside.
std::vector<double> ticks_between(double least, double most, double step, double near = 1e-9);
/// Powers of ten from `least` (above 0) to `most`, rising. `near`: by how much of itself one may lie outside.
std::vector<double> powers_of_ten_between(double least, double most, double near = 1e-6);

}  // namespace engram
