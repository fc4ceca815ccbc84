#pragma once
/// What the product-key memories of a model read while it is measured, brought to the host.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "apps/data/blocks/block_reader.hpp"
#include "core/backend.hpp"
#include "nn/models/language_model.hpp"

namespace engram {

/// Called for every block and every layer that has a memory, the first layer being 0: [positions, heads, selected]
/// slots, best first, and their softmax weights.
using ProductKeyReads =
    std::function<void(std::size_t layer, std::span<const std::int64_t> ids, std::span<const double> weights)>;

/// Hands over what a block's trace holds (ModelTrace::keep_memories). Positions count whose target is scored, in the
/// order of the block: no context, no padding and no position twice, so that there are as many as losses.
void hand_over(const ModelTrace& trace, const data::Block& block, Backend& backend, const ProductKeyReads& reads);

}  // namespace engram
