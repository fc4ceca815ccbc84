#pragma once
/// From the states of an encoder to what the softmax sees: readouts. [key-value-predict 1.3 to 1.5, 1.7, 2].

#include <memory>

#include "autograd/variable.hpp"
#include "nn/layers/recurrent_options.hpp"
#include "nn/module.hpp"

namespace engram {

/// What a readout sees of a block and of those before.
struct ReadoutContext {
  Variable states;     ///< h: [B, M, k]
  Tensor past_states;  ///< [B, C, k], newest last; C = 0: none
  Tensor words;        ///< [B, M] i32
  Tensor past_words;   ///< [B, C, 1] i32, newest last; for recurrent_memory alone
  Tensor preceding;    ///< [B, M] i32: positions of the same text before each
};

class StateReadout : public Module {
 public:
  /// [B, M, d]. `weights`, if given, gets the weights of attention, [B, M, L], the newest position last; stays empty
  /// where there is none.
  virtual Variable forward(Tape& tape, const ReadoutContext& context, Tensor* weights) = 0;
};

/// Throws nothing: the options were checked.
std::unique_ptr<StateReadout> make_readout(const RecurrentOptions& options);

}  // namespace engram
