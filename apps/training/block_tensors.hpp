#pragma once
/// A block of the reader as tensors of a step.

#include "apps/data/batches.hpp"
#include "core/step.hpp"

namespace engram {

struct BlockTensors {
  Tensor inputs;   ///< [rows, M] i32
  Tensor targets;  ///< [rows * M] i32
};
/// The rows [first, first + rows) of the block.
BlockTensors block_tensors(Step& step, const data::Block& block, std::int64_t first, std::int64_t rows);

}  // namespace engram
