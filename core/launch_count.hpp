#pragma once
/// How much a host hands to a device that works behind it: each thing costs the host a few microseconds, and the device
/// the start of another kernel.

#include <cstdint>

#include "core/backend.hpp"

namespace engram {

/// Filled, when the program starts, by the one device that counts, as slots of kernels are: kernels, products and
/// copies on the device since it was opened, those of captured steps once, when they are captured. -1 for other
/// backends.
inline std::int64_t (*count_launches_of)(Backend& backend) = nullptr;

inline std::int64_t launch_count(Backend& backend) {
  return count_launches_of == nullptr ? -1 : count_launches_of(backend);
}

}  // namespace engram
