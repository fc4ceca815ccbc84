#pragma once
/// Layers that keep their persistent slots elsewhere than in the softmax over the context: [all-attention 3].
/// Surprising: dead rows of the key and value projections (split heads) are parameters without any effect.

#include "tests/reference/all_attention_layer.hpp"

namespace engram::reference {

enum class SlotPlace {
  joint,            // one softmax with the context, or no slots at all
  own_softmax,      // attn_split: slot_keys [H, N, e]
  own_heads,        // head_split: slot_keys [H/2, N, e] of the heads H/2 .. H-1
  one_set,          // single_head: slot_keys [1, N, d]
  second_sublayer,  // ff_attn: slot_keys [1, F, d], without projections
};

/// sum_n b_n sqrt(N) V'_n with b = softmax(q . K'_n), by head. query [B, M, H*D], keys and values [H, N, D].
Array64 slot_attention(const Array64& query, const Array64& keys, const Array64& values);

/// The attention sublayer of any place. `options` are those of the context: of all heads, whatever the place.
LayerResult variant_attention_layer(SlotPlace place, const AttentionWeights& weights, const PositionTables& positions,
                                    const Array64& cache, const Array64& h, SpanAttentionOptions options);

}  // namespace engram::reference
