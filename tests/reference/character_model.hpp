#pragma once
/// The whole character model, forward, from the equations ([all-attention 1.1, 1.3, 1.7]): token table, layers that
/// carry a cache from block to block, one relative-position table for all heads and layers, output map, mean negative
/// log-likelihood. Surprising: no scaling of the embedding, no layer norm at the end, tables not tied.

#include <cstdint>
#include <optional>
#include <vector>

#include "tests/reference/all_attention_layer.hpp"
#include "tests/reference/array64.hpp"
#include "tests/reference/memory_variants.hpp"

namespace engram::reference {

/// Slots [1, F, d] in the place of a feed-forward network, and their norm.
struct SlotSublayerWeights {
  Array64 keys, values;
  Array64 norm_gain, norm_bias;  // [d]
};

struct ModelLayer {
  AttentionWeights attention;
  SlotPlace place = SlotPlace::joint;
  std::optional<FeedForwardWeights> feed_forward;    // the baseline Transformer has one
  std::optional<SlotSublayerWeights> slot_sublayer;  // SlotPlace::second_sublayer
};

struct CharacterModel {
  Array64 embedding;         // [V, d]
  PositionTables positions;  // u and u' [S, e]
  std::vector<ModelLayer> layers;
  Array64 out_weight, out_bias;  // [V, d], [V]
  std::int64_t heads = 1;
  std::int64_t ramp = 32;  // used by layers that have spans
  std::int64_t mask_offset = 0;
  Pad pad = Pad::attend_zero;
  bool trimmed = false;  // compute and cache only the window of [all-attention 1.7], in layers that have spans
};

/// What one block leaves for the next; a default-made one is the start of the streams.
struct ModelState {
  std::vector<Array64> caches;           // per layer [B, C, d], oldest first
  std::vector<std::int64_t> valid_past;  // positions seen so far, per stream
};

struct ModelResult {
  std::vector<LayerResult> layers;
  Array64 logits;    // [B, M, V]
  Array64 row_loss;  // [B*M], nats
  double loss;       // mean of row_loss
};

/// One block of B streams. tokens and targets: B*M ids, stream after stream. The state is replaced by the next one.
ModelResult character_model(const CharacterModel& model, const std::vector<std::int64_t>& tokens,
                            const std::vector<std::int64_t>& targets, std::int64_t streams, ModelState& state);

}  // namespace engram::reference
