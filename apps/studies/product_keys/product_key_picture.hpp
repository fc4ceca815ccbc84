#pragma once
/// The picture of `engram memory`: how the weight falls from the slot that gets most of it to the one that gets least.

#include <string>

#include "apps/studies/product_keys/product_key_report.hpp"

namespace engram {

/// Both axes go by ratio: the rank of a slot, up to all slots, and its share of the weight. A line for each memory,
/// with marks where 50, 90 and 99% of the weight lie to the left; beside them the line that a memory would have whose
/// slots are used alike. Where a line ends before the right edge, the other slots were not read. SVG.
std::string draw_memories(const ProductKeyReport& report);

}  // namespace engram
