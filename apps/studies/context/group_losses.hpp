#pragma once
/// The losses that relative effective context lengths are made of: those of a group of runs, by the length of context.

#include <cstdint>
#include <functional>
#include <vector>

#include "apps/studies/context/position_losses.hpp"

namespace engram {

/// Throws UsageError for fewer than two runs, and for runs that the method is not for.
void check_group(const std::vector<StudiedRun>& runs, ContextMethod method);

/// Losses of a run's positions by length, nats, [length][position]. `begins` is called before each length that is read.
/// Throws UsageError where a loss is not finite.
std::vector<std::vector<double>> losses_of(const StudiedRun& run, const std::vector<std::int64_t>& lengths,
                                           ContextMethod method, PositionReader& reader,
                                           const std::function<void(std::int64_t length)>& begins);

}  // namespace engram
