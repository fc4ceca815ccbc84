#pragma once
/// The last M states of a layer's input, from which training projects keys and values anew in every block, so that the
/// projections get gradients from the memory as well. Dai et al.: "Transformer-XL" (2019), section 3.2;
/// [transformer-xl 1.7].

#include <memory>

#include "nn/past/segment_past.hpp"
#include "nn/past/state_buffers.hpp"

namespace engram {

class SegmentMemory final : public StatePast, public SegmentPast {
 public:
  /// Makes one for streams of `width`; `geometry` is that of all layers.
  SegmentMemory(std::shared_ptr<SegmentGeometry> geometry, std::int64_t width);

  const SegmentContext& context() const override { return geometry_->context(); }
  std::int64_t streams() const override { return geometry_->place().streams; }
  const HeadWindows& windows(std::int64_t block) override { return geometry_->windows(block); }

  void read(Tape& tape, const Variable& key_weight, const Variable& value_weight, AttentionVariables& in,
            AttentionOptions& options) override;
  void read_normalised(Tape& tape, const Normalise& normalise, const Variable& key_weight, const Variable& value_weight,
                       AttentionVariables& in, AttentionOptions& options) override;
  /// Keeps the last M of (memory, hidden). hidden: what is to be remembered of the block, [B, m, width]; m may be 0.
  /// Throws ShapeError for another number of streams.
  void update(Step& step, const Tensor& hidden, const Tensor& keys, const Tensor& values) override;
  void reset() override;

  /// Length M from the first update on (zeros: from the start), padding in front while fewer were seen: so that the
  /// steps of a stream are alike.
  const Tensor& states() const override { return buffers_.states(); }
  std::int64_t valid() const override { return valid_; }
  void restore(std::int64_t length, std::int64_t valid) override;
  void append_state(std::vector<std::int64_t>& state) const override;
  /// `positions`: those that the block remembered.
  void settle(std::int64_t positions) override {
    if (remembers(positions)) buffers_.settle(context().memory);
  }
  void replayed(std::int64_t positions) override;
  /// Takes back the last update(), whatever that remembered.
  void undo(std::int64_t positions) override;

 private:
  void hide_missing(Tape& tape, AttentionVariables& in) const;

  bool remembers(std::int64_t positions) const { return context().memory > 0 && positions != 0; }

  std::shared_ptr<SegmentGeometry> geometry_;
  StateBuffers buffers_;
  std::int64_t valid_ = 0, valid_before_ = 0;  // now, and before the last block
};

}  // namespace engram
