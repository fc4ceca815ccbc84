/// Instructions of fused attention, as the program has them and as the disassembler counted them.

#include "apps/studies/bench/attention_instructions.hpp"

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "tests/harness/catch.hpp"

namespace engram::attention_instructions_test {
namespace {

/// "forward_tile bf16,64,false" -> "167/328", from the column `block` of the table.
std::map<std::string, std::string> counted_blocks() {
  std::ifstream file(std::filesystem::path(ENGRAM_SOURCE_DIR) / "tests/gpu/budgets/table.txt");
  REQUIRE(file);
  std::map<std::string, std::string> blocks;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string skipped, block, kernel, types;
    for (int column = 0; column < 7; ++column) words >> skipped;
    words >> block >> kernel >> types;
    if (!line.starts_with('#') && block != "-") blocks[kernel + " " + types] = block;
  }
  return blocks;
}

}  // namespace

TEST_CASE("attention instructions: as nvcc's table has them") {
  const std::map<std::string, std::string> counted = counted_blocks();
  const auto both = [](int slots, int context) { return std::to_string(slots) + "/" + std::to_string(context); };
  const BlockInstructions& by_warpgroup = warpgroup_block_instructions();
  CHECK(counted.at("forward_tile bf16,64,true") == both(by_warpgroup.forward_slots, by_warpgroup.forward_context));
  CHECK(counted.at("query_gradients bf16,64,true") == both(by_warpgroup.query_slots, by_warpgroup.query_context));
  CHECK(counted.at("slot_gradients bf16,64,true") == std::to_string(by_warpgroup.slots));
  CHECK(counted.at("key_gradients bf16,64,true") == std::to_string(by_warpgroup.keys));
  CHECK(counted.at("position_gradients bf16,64") == std::to_string(by_warpgroup.positions));
  CHECK(counted.at("wide_slot_gradients bf16,64") == std::to_string(wide_slot_instructions()));
  for (const bool bf16 : {true, false})
    for (const int depth : {16, 32, 64, 128}) {
      const BlockInstructions& block = block_instructions(depth, bf16);
      const std::string types = (bf16 ? "bf16," : "float,") + std::to_string(depth);
      INFO(types);
      CHECK(counted.at("forward_tile " + types + ",false") == both(block.forward_slots, block.forward_context));
      CHECK(counted.at("query_gradients " + types + ",false") == both(block.query_slots, block.query_context));
      CHECK(counted.at("slot_gradients " + types + ",false") == std::to_string(block.slots));
      CHECK(counted.at("key_gradients " + types + ",false") == std::to_string(block.keys));
      CHECK(counted.at("position_gradients " + types) == std::to_string(block.positions));
    }
}

TEST_CASE("attention instructions: by the products of a launch") {
  const auto of = [](const char* place, const char* function, std::int64_t mma, const AttentionShape& shape) {
    return attention_instructions({.place = place, .function = function, .blocks = 2, .mma = mma}, shape);
  };
  const char* const forward = "cuda/attention/fused_attention_forward.cu:1";
  const char* const backward = "cuda/attention/fused_attention_backward.cu:1";
  const AttentionShape shape{.depth = 64, .slots = 100, .positions = true, .bf16 = true};
  // Two blocks of 64 queries meet two tiles of slots each: 64 blocks of scores, and then three of the context.
  CHECK(of(forward, "operator()", 64 * 16 + 3 * 24, shape) == Approx(64 * 164 + 3 * 308));
  CHECK(of(backward, "launch_queries", 64 * 24 + 3 * 40, shape) == Approx(64 * 174 + 3 * 449));
  CHECK(of(backward, "launch_slots", 5 * 32, shape) == Approx(5 * 227));
  CHECK(of(backward, "launch_wide_slots", 6 * 32, shape) == Approx(6 * 198));
  CHECK(of(backward, "keys", 5 * 48, shape) == Approx(5 * 370));
  CHECK(of(backward, "positions", 5 * 48, shape) == Approx(5 * 394));
  const char* const warpgroup = "cuda/attention/warpgroup_attention.cu:1";
  CHECK(of(warpgroup, "forward", 64 * 16 + 3 * 24, shape) == Approx(64 * 152 + 3 * 310));
  CHECK(of(warpgroup, "queries", 64 * 24 + 3 * 40, shape) == Approx(64 * 167 + 3 * 450));
  CHECK(of(warpgroup, "slots", 5 * 32, shape) == Approx(5 * 190));
  // Without positions a block of the context is as one of slots; without slots all are of the context.
  const AttentionShape plain{.depth = 128, .slots = 0, .positions = false, .bf16 = false};
  CHECK(of(forward, "operator()", 7 * 32, plain) == Approx(7 * 222));
  CHECK(of(backward, "keys", 7 * 64, plain) == Approx(7 * 320));
  // Other kernels, and models that have others.
  CHECK(of("cuda/attention/attention_plain.cu:1", "slots", 64, shape) == 0);
  CHECK(of(backward, "launch_queries", 0, shape) == 0);
  CHECK(of(forward, "operator()", 64, {}) == 0);
}

TEST_CASE("attention instructions: heads are as deep as the kernels have them") {
  ModelOptions model;
  model.all_attention.width = 512;
  model.all_attention.heads = 8;
  model.all_attention.slots = 2048;
  CHECK(AttentionShape::of(model, true).depth == 64);
  CHECK(AttentionShape::of(model, true).slots == 2048);
  model.all_attention.heads = 16;
  model.all_attention.width = 16 * 41;
  CHECK(AttentionShape::of(model, true).depth == 64);
  model.all_attention.memory_mode = MemoryMode::none;
  CHECK(AttentionShape::of(model, true).slots == 0);
  model.family = ModelFamily::recurrent;
  CHECK(AttentionShape::of(model, true).depth == 0);
}

}  // namespace engram::attention_instructions_test
