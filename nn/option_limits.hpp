#pragma once
/// Bounds that the options of models, memories, optimisers and runs share. Those of sizes are far above any model, and
/// so low that products of two of them, and layers, fit 63 bits; rows and positions are counted in 32 bits.

#include <cstdint>
#include <limits>

namespace engram::option_limits {

inline constexpr std::int64_t kLayers = 4096;
inline constexpr std::int64_t kHeads = 65536;
inline constexpr std::int64_t kWidth = std::int64_t{1} << 24;                    ///< numbers in a vector
inline constexpr std::int64_t kRows = std::numeric_limits<std::int32_t>::max();  ///< of a table; inner units, slots
inline constexpr std::int64_t kPositions = kRows / 4;                            ///< that a query sees, or rows of them
inline constexpr std::int64_t kMebibytes = std::int64_t{1} << 40;
inline constexpr std::int64_t kSteps = std::numeric_limits<std::uint32_t>::max();  ///< dropout counts them in 32 bits

/// Numbers that f32 holds, in round figures: not infinite, and where they must be above 0 not 0 or a denormal.
inline constexpr double kLargest = 3e38, kSmallest = 1.2e-38;
/// Of the distribution that weights start from: draws and sums of them are finite too.
inline constexpr double kLargestStart = 1e6;

}  // namespace engram::option_limits
