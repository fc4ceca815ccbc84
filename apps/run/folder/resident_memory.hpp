#pragma once
/// The most memory that this process had at once, as the system counts it.

#include <cstddef>

namespace engram {

/// Forgets the largest size so far, where the system (Linux) can.
void reset_peak_resident_bytes();
/// The largest size since then, of the whole process; 0 when the system does not say.
std::size_t peak_resident_bytes();

}  // namespace engram
