#pragma once
/// Of steps whose launches are sampled, whose results mean nothing: what later kernels take for places in memory must
/// be some all the same.

#include <cstdint>
#include <span>
#include <string_view>

#include "core/backend.hpp"
#include "core/step.hpp"

namespace engram {

/// Whether the kernel makes places of places, for which all its blocks must run.
bool makes_places(std::string_view kernel);

/// After a kernel that selects slots of a memory: selects them at random instead, by a sequence whose state this is.
void draw_selected(std::string_view kernel, std::span<const TensorArgument> tensors, Backend& backend,
                   std::uint64_t& state);

}  // namespace engram
