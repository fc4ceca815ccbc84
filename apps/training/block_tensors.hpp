#pragma once
/// A block of the reader on the device, in memory that stays where it is from step to step.

#include "apps/data/batches.hpp"
#include "core/backend.hpp"
#include "core/tensor.hpp"

namespace engram {

class BlockTensors {
 public:
  /// Copies the block's tokens, into memory from `allocator` where it is larger than every one before.
  void write(const data::Block& block, Backend& backend, Allocator& allocator);

  struct Rows {
    Tensor inputs;   ///< [rows, M] i32
    Tensor targets;  ///< [rows * M] i32
  };
  /// The rows [first, first + count) of the block. They share its memory.
  Rows rows(std::int64_t first, std::int64_t count) const;

  std::int64_t length = 0;  ///< M

 private:
  Tensor inputs_, targets_;  // [elements]
};

}  // namespace engram
