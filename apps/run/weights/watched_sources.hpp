#pragma once
/// Tensors that tell how much of them has been written.

#include <cstdint>
#include <functional>
#include <vector>

#include "core/files/safetensors.hpp"

namespace engram {

/// Called with the bytes of tensors that have been written so far, and of all.
using WriteWatch = std::function<void(std::int64_t written, std::int64_t all)>;

/// The sources as ones whose reads tell the watch; it may be empty. To be written once.
std::vector<TensorSource> watched(std::vector<TensorSource> sources, const WriteWatch& watch);

}  // namespace engram
