#pragma once
/// Frozen weights, timed block by block.

#include <cstdint>
#include <vector>

#include "apps/run/model/block_tensors.hpp"
#include "apps/run/model/placed_model.hpp"
#include "apps/studies/bench/bench_model.hpp"

namespace engram {

/// Blocks of random tokens, once the past is full: up to the logits, for a vocabulary in clusters up to the losses, or
/// up to all words' probabilities for a single token.
class BlockTimer {
 public:
  /// Fills the past. The model and its runtime must outlive it.
  BlockTimer(const BenchModel& bench, const PlacedModel& placed, ModelPast past, std::int64_t streams,
             std::int64_t block);

  /// Reads a block of every stream. Returns the seconds.
  double run() { return run(block_); }
  /// The same of a shorter block.
  double run(std::int64_t block);

 private:
  PlacedModel placed_;
  bool in_clusters_;
  ModelPast past_;
  std::int64_t streams_, block_;
  std::vector<std::int32_t> tokens_;
  BlockTensors input_;
};

}  // namespace engram
