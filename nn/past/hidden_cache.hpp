#pragma once
/// The last hidden states of a layer's input, from which training projects keys and values anew in every block, so that
/// the projections get gradients from the past as well. [all-attention 1.3].

#include <vector>

#include "nn/past/past.hpp"
#include "nn/past/span_extent.hpp"
#include "nn/past/state_buffers.hpp"

namespace engram {

class HiddenCache final : public StatePast, public AttentionPast {
 public:
  /// Streams of `width`, for a layer with spans of this extent, which says how many states to keep and must outlive the
  /// cache.
  HiddenCache(const PastPlace& place, std::int64_t width, Pad pad, const SpanExtent& extent)
      : pad_(pad), extent_(&extent), buffers_(place, width) {}

  void read(Tape& tape, const Variable& key_weight, const Variable& value_weight, AttentionVariables& in,
            AttentionOptions& options) override;
  /// Keeps the last SpanExtent::cache_length states of (cache, block). Call once per block, after read().
  void update(Step& step, const Tensor& hidden, const Tensor& keys, const Tensor& values) override;
  void reset() override;

  void append_state(std::vector<std::int64_t>& state) const override;
  void settle(std::int64_t) override { buffers_.settle(extent_->cache_length); }
  void replayed(std::int64_t positions) override;
  void undo(std::int64_t positions) override;

  const Tensor& states() const override { return buffers_.states(); }
  std::int64_t streams() const override { return buffers_.place().streams; }
  std::int64_t valid() const override { return valid_; }
  void restore(std::int64_t length, std::int64_t valid) override;
  /// Blocks in which a window reached farther back than the cache did (after its first filling): the missing states
  /// counted as zero vectors, or not at all with Pad::mask.
  std::int64_t shortfalls() const override { return shortfalls_; }

 private:
  void count_shortfall();
  /// Of the states: how many are of the stream itself.
  std::int64_t valid_states() const;

  Pad pad_;
  const SpanExtent* extent_;
  StateBuffers buffers_;
  std::int64_t valid_ = 0;
  std::int64_t shortfalls_ = 0;
};

}  // namespace engram
