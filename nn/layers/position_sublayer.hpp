#pragma once
/// What a layer does at every position by itself, behind its attention: a feed-forward network, a product-key memory in
/// its place, or both.

#include <memory>
#include <optional>

#include "nn/layers/feed_forward.hpp"
#include "nn/layers/product_key_memory.hpp"

namespace engram {

class PositionSublayer {
 public:
  /// `feed_forward` makes F, a FeedForward or an optional one, and is called only where no memory replaces it.
  /// `memory`: nullptr where the layer has none.
  template <class MakeFeedForward>
  PositionSublayer(MemoryPlacement placement, std::unique_ptr<ProductKeyMemory> memory,
                   const MakeFeedForward& feed_forward)
      : placement_(placement), memory_(std::move(memory)) {
    if (!memory_ || placement_ != MemoryPlacement::replace) feed_forward_ = feed_forward();
  }

  /// Whether there is anything inside the residual, for forward().
  bool exists() const { return feed_forward_ || (memory_ && placement_ != MemoryPlacement::after); }
  /// x: [..., width] -> F(x), memory(x) or F(x) + memory(x), F(x) with dropout: a memory has rates of its own. Fills
  /// `trace`, if one is given and there is a memory.
  Variable forward(const Variable& x, MemoryTrace* trace, const StateDropout& dropout = {});
  /// What follows the whole layer: x + memory(x) where the memory is placed after it, else x.
  Variable behind(const Variable& x, MemoryTrace* trace);
  /// As parts of the layer, feed_forward and memory.
  void visit(Visitor& visit);

 private:
  MemoryPlacement placement_;
  std::unique_ptr<ProductKeyMemory> memory_;
  std::optional<FeedForward> feed_forward_;
};

}  // namespace engram
