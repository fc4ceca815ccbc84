#pragma once
/// What a layer remembers of the positions before the present block. The model is written once against this interface;
/// training keeps hidden states, evaluation with frozen weights keeps keys and values.

#include <cstdint>

#include "autograd/functions/attention.hpp"
#include "autograd/tape.hpp"
#include "nn/layers/attention_span.hpp"

namespace engram {

/// What positions before the start of a stream are.
enum class Pad : std::uint8_t {
  attend_zero,  ///< zero vectors that take part in the softmax, as in the released models (default)
  mask          ///< not there: weight 0
};

class LayerPast {
 public:
  virtual ~LayerPast() = default;
  /// Fills the past keys and values (and what goes with them) for one attention call. The weights are the layer's
  /// projections, [width, width].
  virtual void read(Tape& tape, const Variable& key_weight, const Variable& value_weight, AttentionVariables& in,
                    AttentionOptions& options) = 0;
  /// Takes the block in: hidden, keys, values: [B, M, width]. No gradient flows through it.
  virtual void update(Step& step, const Tensor& hidden, const Tensor& keys, const Tensor& values,
                      const AttentionSpan& span) = 0;
  /// Forgets everything: the start of a stream.
  virtual void reset() = 0;
};

}  // namespace engram
