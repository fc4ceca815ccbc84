#include "apps/studies/bench/attention_instructions.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace engram {
namespace {

// As tests/gpu/budgets/table.txt has them; tests/apps/studies/bench/attention_instructions_test.cpp compares.
constexpr std::array<BlockInstructions, 8> kBlocks{{
    {true, 16, 135, 253, 140, 341, 186, 282, 300},
    {true, 32, 145, 272, 152, 391, 200, 310, 339},
    {true, 64, 164, 308, 174, 449, 227, 370, 394},
    {true, 128, 207, 382, 235, 556, 299, 479, 521},
    {false, 16, 141, 257, 144, 348, 188, 291, 316},
    {false, 32, 153, 282, 161, 383, 208, 325, 363},
    {false, 64, 176, 330, 188, 444, 242, 397, 449},
    {false, 128, 222, 418, 253, 580, 320, 529, 622},
}};

constexpr BlockInstructions kByWarpgroup{true, 64, 152, 310, 167, 450, 190, 360, 394};

constexpr int kWideSlots = 198;

constexpr std::int64_t kTileRows = 64, kTileBlocks = 16;  // queries, and keys, of a tile; 16x16 blocks in one

std::int64_t fused_depth(std::int64_t depth) {
  for (const std::int64_t fused : {16, 32, 64, 128})
    if (depth <= fused) return fused;
  return 0;
}

/// One kernel's products and instructions for a block. Products are of 16x8 with 16 inner places: two for every 16
/// numbers of a head's depth and matrix that is multiplied.
struct Part {
  std::int64_t matrices;
  int instructions;
};

}  // namespace

AttentionShape AttentionShape::of(const ModelOptions& model, bool bf16) {
  AttentionShape shape{.bf16 = bf16};
  switch (model.family) {
    case ModelFamily::all_attention: {
      const AllAttentionOptions& own = model.all_attention;
      shape.depth = fused_depth(own.width / std::max<std::int64_t>(1, own.heads));
      shape.slots = own.memory_mode == MemoryMode::all ? own.slots : 0;
      shape.positions = true;
      break;
    }
    case ModelFamily::transformer_xl:
      shape.depth = fused_depth(model.transformer_xl.head_depth());
      shape.positions = model.transformer_xl.positions == PositionKind::relative;
      break;
    case ModelFamily::product_key:
      shape.depth = fused_depth(model.product_key.width / std::max<std::int64_t>(1, model.product_key.heads));
      break;
    case ModelFamily::recurrent:
      break;
  }
  return shape;
}

const BlockInstructions& block_instructions(std::int64_t depth, bool bf16) {
  return *std::ranges::find_if(kBlocks,
                               [&](const BlockInstructions& one) { return one.depth == depth && one.bf16 == bf16; });
}

const BlockInstructions& warpgroup_block_instructions() { return kByWarpgroup; }

int wide_slot_instructions() { return kWideSlots; }

double attention_instructions(const LaunchCost& launch, const AttentionShape& shape) {
  const auto is_of = [&launch](std::string_view file) { return launch.place.find(file) != std::string::npos; };
  const std::string_view part = launch.function;
  const bool by_warpgroup = is_of("/warpgroup_attention.cu:");
  const bool forward = is_of("/fused_attention_forward.cu:") || (by_warpgroup && part == "forward");
  if (shape.depth == 0 || launch.mma == 0 || !(forward || by_warpgroup || is_of("/fused_attention_backward.cu:")))
    return 0;
  const BlockInstructions& block =
      by_warpgroup ? warpgroup_block_instructions() : block_instructions(shape.depth, shape.bf16);
  const std::int64_t mma_of_matrix = 2 * shape.depth / 16;
  const auto of_products = [&](std::int64_t mma, const Part& one) {
    return one.instructions * static_cast<double>(std::max<std::int64_t>(0, mma)) /
           static_cast<double>(one.matrices * mma_of_matrix);
  };
  if (part == "launch_wide_slots") return of_products(launch.mma, {4, kWideSlots});
  // By warps it is launch_slots() that launches, so that another form can be chosen there.
  if (part.ends_with("slots")) return of_products(launch.mma, {4, block.slots});
  if (part == "positions") return of_products(launch.mma, {6, block.positions});
  if (part == "keys") return of_products(launch.mma, shape.positions ? Part{6, block.keys} : Part{4, block.slots});
  // Forward and queries: slots, then the context.
  const Part slots = forward ? Part{2, block.forward_slots} : Part{3, block.query_slots};
  const Part context = !shape.positions ? slots
                       : forward        ? Part{3, block.forward_context}
                                        : Part{5, block.query_context};
  const std::int64_t slot_tiles = (shape.slots + kTileRows - 1) / kTileRows;
  const std::int64_t of_slots =
      std::min(launch.mma, launch.blocks * slot_tiles * kTileBlocks * slots.matrices * mma_of_matrix);
  return of_products(of_slots, slots) + of_products(launch.mma - of_slots, context);
}

}  // namespace engram
