#pragma once
/// What nvcc makes of the kernels of fused attention, in instructions of a warp: the counts of tests/gpu/budgets, which
/// no device that runs the kernels on the host can see.

#include <cstdint>

#include "core/launch_cost.hpp"
#include "nn/models/model_options.hpp"

namespace engram {

/// What a model's attention asks of these kernels.
struct AttentionShape {
  std::int64_t depth = 0;  ///< of heads, as the kernels have it: 16, 32, 64 or 128; 0: the model takes other kernels
  std::int64_t slots = 0;  ///< persistent ones of a head
  bool positions = false;  ///< whether scores have a term of distances
  bool bf16 = false;       ///< tensors, rather than f32

  static AttentionShape of(const ModelOptions& model, bool bf16);
};

/// Instructions for a block of 16x16 scores, with its share of loading tiles and drawing dropout: by part of a kernel,
/// compute capability 9.0, nvcc 13.0.
struct BlockInstructions {
  bool bf16;
  int depth;
  int forward_slots, forward_context, query_slots, query_context, slots, keys, positions;
};
/// Of this depth and these tensors.
const BlockInstructions& block_instructions(std::int64_t depth, bool bf16);
/// Of the kernels whose products are a warpgroup's, of depth 64 and bf16; that of position keys has no such form.
const BlockInstructions& warpgroup_block_instructions();

/// Of slots' gradients where a warp has two blocks of slots (wide_slot_gradients of
/// cuda/attention/fused_attention_slots.cuh), of depth 64 and bf16.
int wide_slot_instructions();

/// Instructions of the launch, from its products; 0 for a launch of other kernels. Where scores have no positions, a
/// block of the context is counted as one of slots, which have none either.
double attention_instructions(const LaunchCost& launch, const AttentionShape& shape);

}  // namespace engram
