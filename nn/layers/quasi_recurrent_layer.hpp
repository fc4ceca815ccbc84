#pragma once
/// One quasi-recurrent layer: a convolution over the last inputs, and gates that pool it over time. Bradbury, Merity,
/// Xiong, Socher: "Quasi-Recurrent Neural Networks" (2017); [key-value-predict 1.9].

#include "autograd/parameter.hpp"
#include "nn/layers/encoder_layer.hpp"
#include "nn/layers/recurrent_options.hpp"

namespace engram {

/// Parameters: input [3k, taps w], rows z, f, o, columns those of the present input, then of the one before, and so on;
/// bias [3k], whose forget gates start at exactly 1. All else starts uniform in +- init_range.
class QuasiRecurrentLayer final : public EncoderLayer {
 public:
  QuasiRecurrentLayer(const RecurrentOptions& options, std::int64_t layer);

  EncoderStates forward(const Variable& x, const EncoderStart& start, const Tensor& preceding) override;
  void visit(Visitor& visit) override;

 private:
  std::int64_t taps_;
  double weight_dropout_;  // on `input`
  Parameter input_, bias_;
};

}  // namespace engram
