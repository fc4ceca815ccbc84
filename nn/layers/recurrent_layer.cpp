#include "nn/layers/recurrent_layer.hpp"

#include <array>

#include "autograd/functions/concat.hpp"
#include "autograd/functions/dropout.hpp"
#include "autograd/functions/linear.hpp"
#include "autograd/functions/pointwise.hpp"
#include "autograd/functions/recurrence.hpp"
#include "autograd/tape.hpp"
#include "core/kernels/fill.hpp"
#include "nn/init.hpp"
#include "nn/visitor.hpp"

namespace engram {
namespace {

Initializer recurrent_bias_start(const RecurrentOptions& options, std::int64_t width) {
  Initializer start = init::uniform(options.init_range);
  if (options.encoder == RecurrentCell::lstm) {
    start.fixed_begin = width;
    start.fixed_end = 2 * width;
    start.fixed = 1;
  }
  return start;
}

}  // namespace

RecurrentLayer::RecurrentLayer(const RecurrentOptions& options, std::int64_t layer)
    : recurrence_(options.recurrence()),
      weight_dropout_(options.weight_dropout),
      input_({recurrence_.input_blocks() * options.layer_width(layer), options.layer_input(layer)},
             init::uniform(options.init_range)),
      recurrent_({recurrence_.weight_blocks() * options.layer_width(layer), options.layer_width(layer)},
                 init::uniform(options.init_range)),
      bias_({(options.encoder == RecurrentCell::lstm ? 4 : 1) * options.layer_width(layer)},
            recurrent_bias_start(options, options.layer_width(layer))) {
  if (options.output_map && layer + 1 == options.layers)
    output_.emplace(Shape{options.width, options.width}, init::uniform(options.init_range));
}

EncoderStates RecurrentLayer::forward(const Variable& x, const EncoderStart& start, const Tensor& preceding) {
  Tape& tape = x.tape();
  Variable bias = tape.parameter(bias_);
  const std::int64_t unbiased = input_.shape()[0] - bias.shape()[0];
  if (unbiased > 0) {
    Tensor zeros = tape.step().empty({unbiased}, bias.dtype());
    kernels::fill(tape.step(), zeros, 0.0);
    bias = concat(std::array{bias, tape.constant(std::move(zeros))}, 0);
  }
  Recurrence result =
      recurrence(linear(x, tape.parameter(input_), bias), dropout(tape.parameter(recurrent_), weight_dropout_),
                 {.hidden = start.states, .cells = start.cells}, preceding, recurrence_);
  Tensor states = result.outputs.value();
  Variable seen = output_ ? tanh(linear(result.outputs, tape.parameter(*output_))) : std::move(result.outputs);
  return {.states = std::move(seen), .recurrent = std::move(states), .cells = std::move(result.cells), .inputs = {}};
}

void RecurrentLayer::visit(Visitor& visit) {
  visit("input", input_);
  visit("recurrent", recurrent_);
  visit("bias", bias_);
  if (output_) visit("output", *output_);
}

}  // namespace engram
