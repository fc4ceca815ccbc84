#pragma once
/// One recurrent layer whose steps multiply earlier states: vectors to states. [key-value-predict 1.1, 1.2, 1.6].

#include <optional>

#include "autograd/parameter.hpp"
#include "nn/layers/encoder_layer.hpp"
#include "nn/layers/recurrent_options.hpp"

namespace engram {

/// Parameters: input [G k, w], recurrent, bias. LSTM: G = 4, recurrent [4k, k], rows of both in the order input,
/// forget, candidate, output gate; bias [4k], whose forget gates start at exactly 1. RNN: G = 1, recurrent [k, k]. With
/// fixed weights of the last N states (hornn_fofe): G = 1, recurrent [N k, k]. With gates (hornn_gated): G = 1 + N,
/// recurrent [2 N k, k], first those of states, then those of gates; gates have no bias. output [k, k] with output_map,
/// of the last layer: h <- tanh(output h) behind the recurrence, which does not see it. All start uniform in
/// +- init_range.
class RecurrentLayer final : public EncoderLayer {
 public:
  RecurrentLayer(const RecurrentOptions& options, std::int64_t layer);

  EncoderStates forward(const Variable& x, const EncoderStart& start, const Tensor& preceding) override;
  void visit(Visitor& visit) override;

 private:
  RecurrenceOptions recurrence_;
  double weight_dropout_;  // on `recurrent`
  Parameter input_, recurrent_, bias_;
  std::optional<Parameter> output_;
};

}  // namespace engram
