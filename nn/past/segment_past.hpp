#pragma once
/// What the Transformer-XL family asks of its pasts beside AttentionPast: how far they reach, and memory rows that are
/// normalised before they are projected.

#include <functional>

#include "nn/past/past.hpp"
#include "nn/past/segment_geometry.hpp"

namespace engram {

/// What a layer does to its input first: [B, M, width] of the same shape.
using Normalise = std::function<Variable(const Variable& states)>;

class SegmentPast : public AttentionPast {
 public:
  virtual const SegmentContext& context() const = 0;
  /// The windows of attention for a block of so many positions: options.windows of read().
  virtual const HeadWindows& windows(std::int64_t block) = 0;
  /// AttentionPast::read() of a layer that normalises its input, the past included, before it projects it. The
  /// parameters of `normalise` get gradients from the past as well.
  virtual void read_normalised(Tape& tape, const Normalise& normalise, const Variable& key_weight,
                               const Variable& value_weight, AttentionVariables& in, AttentionOptions& options) = 0;
  /// The layer's keys of positions, [P, H D], where weights are frozen and they were kept; else empty.
  virtual Tensor position_keys() const { return {}; }
  /// Keeps them, if it is a past for frozen weights.
  virtual void keep_position_keys(Step&, const Tensor& /*keys*/) {}
};

/// A past of the Transformer-XL family. Throws Error when it is one of another family.
inline SegmentPast& segment_past(LayerPast& past) {
  return past_as<SegmentPast>(past, "this family needs memories of segments");
}

}  // namespace engram
