#pragma once
/// Options of small models, for tests.

#include "nn/models/all_attention_options.hpp"

namespace engram::harness {

/// What both kinds of memory need; a model uses `inner` or `slots`, whichever its mode has.
struct ModelSizes {
  std::int64_t vocabulary, layers, width, inner, slots, max_span, ramp;
};

/// Two heads; everything else as AllAttentionOptions has it.
inline AllAttentionOptions model_options(MemoryMode mode, const ModelSizes& sizes) {
  AllAttentionOptions options;
  options.memory_mode = mode;
  options.vocabulary = sizes.vocabulary;
  options.layers = sizes.layers;
  options.width = sizes.width;
  options.heads = 2;
  options.inner = has_second_sublayer(mode) ? sizes.inner : 0;
  options.slots = has_slots(mode) ? sizes.slots : 0;
  options.max_span = sizes.max_span;
  options.ramp = sizes.ramp;
  return options;
}

inline constexpr MemoryMode kMemoryModes[] = {MemoryMode::all,         MemoryMode::attn_split, MemoryMode::head_split,
                                              MemoryMode::single_head, MemoryMode::ff_attn,    MemoryMode::none,
                                              MemoryMode::transformer};

}  // namespace engram::harness
