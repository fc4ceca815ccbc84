#pragma once
/// A block of tokens on the device, in memory that stays where it is from step to step, and, for a vocabulary in
/// clusters, what each piece of it needs to know about them.

#include <cstdint>
#include <span>
#include <vector>

#include "apps/data/blocks/block_reader.hpp"
#include "apps/run/model/placed_model.hpp"
#include "core/backend.hpp"
#include "core/tensor.hpp"
#include "nn/layers/token_io.hpp"

namespace engram {

/// A block's tokens on the host, row by row.
struct BlockTokens {
  std::span<const std::int32_t> inputs;
  /// length - context for every row, or none where no losses are wanted.
  std::span<const std::int32_t> targets;
  /// Positions of its own text before each, as Block::preceding; empty: every stream is one text.
  std::span<const std::int32_t> preceding;
  /// 1 for targets that count, as Block::scored; empty: all do.
  std::span<const std::uint8_t> scored;
  std::int64_t length = 0;     ///< M; rows are inputs.size() / M
  std::int64_t context = 0;    ///< as Block::context
  std::int64_t fed_again = 0;  ///< as Block::fed_again
};
/// The tokens of a block that a reader filled, which must stay. `scored` is empty where all count.
BlockTokens tokens_of(const data::Block& block);

class BlockTensors {
 public:
  /// Copies the block's tokens, cut into so many pieces of equal numbers of rows, into memory from `allocator` where it
  /// is larger than every block before. `clusters`: of TokenIo; nullptr: none. `losses`: their dtype.
  void write(const BlockTokens& block, std::int64_t pieces, const VocabularyClusters* clusters, Backend& backend,
             Allocator& allocator, DType losses = DType::f32);
  /// Copies the block in one piece, for this model, and returns it.
  TokenBatch batch_of(const BlockTokens& block, const PlacedModel& placed);
  /// A piece of the block. It shares the block's memory.
  TokenBatch piece(std::int64_t index) const;
  /// Appends what the kernels of a step over this block depend on.
  void append_state(std::vector<std::int64_t>& state) const;

  std::int64_t length() const { return length_; }  ///< M
  /// Of every row: positions that memories take in.
  std::int64_t remembered() const { return length_ - fed_again_; }
  /// Of every row: positions with a target.
  std::int64_t scored() const { return length_ - context_; }

 private:
  std::int64_t length_ = 0, context_ = 0, fed_again_ = 0;
  std::int64_t rows_of_piece_ = 0;
  bool has_targets_ = false, has_preceding_ = false, all_count_ = true;
  Tensor inputs_, targets_, preceding_;     // [elements]
  Tensor scored_;                           // [elements], of the losses' dtype
  std::vector<TokenPartition> partitions_;  // of the pieces; empty: no clusters
  std::vector<Tensor> lists_;               // their values
};

}  // namespace engram
