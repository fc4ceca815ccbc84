#include "nn/layers/position_sublayer.hpp"

#include "autograd/functions/add.hpp"

namespace engram {

Variable PositionSublayer::forward(const Variable& x, MemoryTrace* trace, const StateDropout& dropout) {
  if (!feed_forward_) return memory_->forward(x, {}, trace);
  const Variable y = dropout(feed_forward_->forward(x));
  return memory_ && placement_ == MemoryPlacement::beside ? add(y, memory_->forward(x, {}, trace)) : y;
}

Variable PositionSublayer::behind(const Variable& x, MemoryTrace* trace) {
  return memory_ && placement_ == MemoryPlacement::after ? add(x, memory_->forward(x, {}, trace)) : x;
}

void PositionSublayer::visit(Visitor& visit) {
  if (feed_forward_) visit("feed_forward", *feed_forward_);
  if (memory_) visit("memory", *memory_);
}

}  // namespace engram
