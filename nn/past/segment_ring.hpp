#pragma once
/// Keys and values of the remembered positions in ring buffers, and the layer's keys of distances: exact when the
/// weights do not change, and nothing is projected twice. [transformer-xl 9.2].

#include <memory>

#include "nn/past/segment_past.hpp"

namespace engram {

class SegmentRing final : public LayerPast, public SegmentPast {
 public:
  /// Heads of `depth`; `geometry` is that of all layers. Where all of the memory and the segment is visible, blocks may
  /// have at most `longest_block` positions, which the rings have room for.
  SegmentRing(std::shared_ptr<SegmentGeometry> geometry, std::int64_t depth, std::int64_t longest_block);

  const SegmentContext& context() const override { return geometry_->context(); }
  std::int64_t streams() const override { return geometry_->place().streams; }
  std::int64_t valid() const override { return count_; }
  /// Windows of attention, equal for all blocks. Throws Error for a block that is too long.
  const HeadWindows& windows(std::int64_t block) override;

  void read(Tape& tape, const Variable& key_weight, const Variable& value_weight, AttentionVariables& in,
            AttentionOptions& options) override;
  /// The rings hold keys of what was normalised already.
  void read_normalised(Tape& tape, const Normalise&, const Variable& key_weight, const Variable& value_weight,
                       AttentionVariables& in, AttentionOptions& options) override {
    read(tape, key_weight, value_weight, in, options);
  }
  /// Throws ShapeError for another number of streams.
  void update(Step& step, const Tensor& hidden, const Tensor& keys, const Tensor& values) override;
  /// Forgets the keys of distances too: weights may have changed since.
  void reset() override;
  Tensor position_keys() const override { return position_keys_; }
  void keep_position_keys(Step& step, const Tensor& keys) override;

 private:
  std::shared_ptr<SegmentGeometry> geometry_;
  std::int64_t longest_block_;
  HeadWindows windows_;
  Tensor keys_, values_;    // packed: [B windows.total, depth]; empty where no window reaches back
  Tensor position_keys_;    // [P, H depth]
  std::int64_t count_ = 0;  // positions appended so far
};

}  // namespace engram
