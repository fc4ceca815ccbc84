#pragma once
/// One layer of a recurrent encoder, of any kind: vectors to states, position by position. [key-value-predict 1.1, 1.2,
/// 1.6, 1.9].

#include "autograd/variable.hpp"
#include "nn/module.hpp"

namespace engram {

/// What a layer remembers of earlier positions when a block begins: constants, the newest last. Absent where the kind
/// has no such thing.
struct EncoderStart {
  Tensor states;  ///< [B, rows, k]: of kinds that multiply them
  Tensor cells;   ///< [B, rows, k]: lstm and qrnn
  Tensor inputs;  ///< [B, rows, inputs]: qrnn
};
/// What it makes of a block. But for `states` constants, of which the last rows are what is to be remembered.
struct EncoderStates {
  Variable states;   ///< h: [B, M, k], what the next layer or the readout sees
  Tensor recurrent;  ///< [B, M, k]: states, but with output_map what they were before it
  Tensor cells;      ///< [B, M, k]: lstm and qrnn
  Tensor inputs;     ///< [B, M, inputs]: qrnn, what the layer read
};

class EncoderLayer : public Module {
 public:
  /// x: [B, M, inputs]; preceding: [B, M] i32, as recurrence() takes it.
  virtual EncoderStates forward(const Variable& x, const EncoderStart& start, const Tensor& preceding) = 0;
};

}  // namespace engram
