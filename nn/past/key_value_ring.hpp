#pragma once
/// Keys and values of the past in ring buffers, each head as long as its own window: exact when the weights do not
/// change, and nothing is projected twice. [all-attention 10.4].

#include "nn/past/past.hpp"
#include "nn/past/past_place.hpp"

namespace engram {

class KeyValueRing final : public LayerPast, public AttentionPast {
 public:
  /// Heads of `depth`; `windows` are those of the layer's span, which must not change while the ring is in use.
  KeyValueRing(const PastPlace& place, std::int64_t depth, Pad pad, const HeadWindows& windows);

  void read(Tape& tape, const Variable& key_weight, const Variable& value_weight, AttentionVariables& in,
            AttentionOptions& options) override;
  void update(Step& step, const Tensor& hidden, const Tensor& keys, const Tensor& values) override;
  void reset() override;
  std::int64_t streams() const override { return place_.streams; }
  std::int64_t valid() const override { return count_; }

 private:
  PastPlace place_;
  Pad pad_;
  HeadWindows windows_;
  Tensor keys_, values_;    // packed: [B windows.total, depth]
  std::int64_t count_ = 0;  // positions appended so far
};

}  // namespace engram
