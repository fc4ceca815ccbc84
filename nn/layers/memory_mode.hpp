#pragma once
/// Where a layer keeps what it knows about every text: the variants that Sukhbaatar et al. compare in "Augmenting
/// Self-attention with Persistent Memory" (2019), figure 2. Exact definitions: [all-attention 3].

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/names.hpp"

namespace engram {

enum class MemoryMode : std::uint8_t {
  all,          ///< persistent slots in the softmax of attention; no feed-forward
  attn_split,   ///< persistent slots with a softmax of their own; both results are added
  head_split,   ///< half of the heads see the context only, the other half persistent slots only
  single_head,  ///< as attn_split, with one set of slots of the layer's width instead of one per head
  ff_attn,      ///< a second sublayer: attention of one head to persistent slots, without projections
  none,         ///< neither persistent slots nor feed-forward: the ablation N = 0
  transformer   ///< the standard layer: attention, then a ReLU feed-forward sublayer
};
constexpr auto names_of(MemoryMode) {
  return std::to_array<Named<MemoryMode>>({{MemoryMode::all, "all"},
                                           {MemoryMode::attn_split, "attn_split"},
                                           {MemoryMode::head_split, "head_split"},
                                           {MemoryMode::single_head, "single_head"},
                                           {MemoryMode::ff_attn, "ff_attn"},
                                           {MemoryMode::none, "none"},
                                           {MemoryMode::transformer, "transformer"}});
}

/// Whether attention itself has persistent slots: `slots` of the options.
constexpr bool has_slots(MemoryMode mode) {
  return mode == MemoryMode::all || mode == MemoryMode::attn_split || mode == MemoryMode::head_split ||
         mode == MemoryMode::single_head;
}
/// Whether the layer has a second sublayer, `inner` wide.
constexpr bool has_second_sublayer(MemoryMode mode) {
  return mode == MemoryMode::ff_attn || mode == MemoryMode::transformer;
}
/// Heads that look at the context.
constexpr std::int64_t context_heads(MemoryMode mode, std::int64_t heads) {
  return mode == MemoryMode::head_split ? heads / 2 : heads;
}

}  // namespace engram
