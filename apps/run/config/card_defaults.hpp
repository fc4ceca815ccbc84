#pragma once
/// What training does on a card where its configuration does not say otherwise. A card multiplies bf16 many times as
/// fast as f32, and only then takes attention in one pass (docs/reference/cards.md).

#include <cstdint>
#include <set>
#include <string>

#include "apps/run/config/run_config.hpp"
#include "core/device.hpp"
#include "core/dtype.hpp"

namespace engram {

/// MiB of logits that a softmax over a large vocabulary holds at a time on a card. Each such block rounds the output
/// weight anew for its products and adds to its gradient: about the bytes of as many rows of logits as the weight has
/// columns. Blocks for a CPU's caches have fewer rows; in these all logits of the papers' models fit.
inline constexpr std::int64_t kCardLogitsMemory = 512;

/// For a new run on a card with parameters of f32: bf16 activations, and short validations as training computes. Keys
/// that were `given`, as "section.key", keep their values, and so do activations where f32 products were asked for.
/// Models of family recurrent have f32 activations alone, and kCardLogitsMemory. Other devices change nothing.
void choose_for_card(RunConfig& config, const std::set<std::string>& given, DeviceKind device, DType dtype);

}  // namespace engram
