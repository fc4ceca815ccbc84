#pragma once
/// One recurrent layer: vectors of words to states. [key-value-predict 1.1, 1.2, 1.6].

#include "autograd/functions/recurrence.hpp"
#include "nn/layers/recurrent_options.hpp"
#include "nn/module.hpp"
#include "nn/visitor.hpp"

namespace engram {

/// Parameters: input [G k, w], recurrent, bias. LSTM: G = 4, recurrent [4k, k], rows of both in the order input,
/// forget, candidate, output gate; bias [4k], whose forget gates start at exactly 1. RNN: G = 1, recurrent [k, k]. With
/// fixed weights of the last N states (hornn_fofe): G = 1, recurrent [N k, k]. With gates (hornn_gated): G = 1 + N,
/// recurrent [2 N k, k], first those of states, then those of gates; gates have no bias. output [k, k] with output_map:
/// h <- tanh(output h) behind the recurrence, which does not see it. All start uniform in +- init_range.
class RecurrentEncoder final : public Module {
 public:
  explicit RecurrentEncoder(const RecurrentOptions& options);

  struct Result {
    Variable states;   ///< h: [B, M, k], what the readout sees
    Tensor recurrent;  ///< what is to be remembered: states, but with output_map what they were before it
    Tensor cells;      ///< [B, M, k], LSTM alone
  };
  /// x: [B, M, w]; start, preceding: as recurrence() takes them.
  Result forward(const Variable& x, const RecurrentStart& start, const Tensor& preceding);
  void visit(Visitor& visit) override;

 private:
  RecurrenceOptions recurrence_;
  Parameter input_, recurrent_, bias_;
  std::optional<Parameter> output_;
};

}  // namespace engram
