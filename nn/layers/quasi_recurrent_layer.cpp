#include "nn/layers/quasi_recurrent_layer.hpp"

#include <array>
#include <memory_resource>
#include <vector>

#include "autograd/functions/concat.hpp"
#include "autograd/functions/delayed_slices.hpp"
#include "autograd/functions/dropout.hpp"
#include "autograd/functions/linear.hpp"
#include "autograd/functions/quasi_recurrence.hpp"
#include "autograd/tape.hpp"
#include "nn/init.hpp"
#include "nn/visitor.hpp"

namespace engram {
namespace {

Initializer quasi_bias_start(const RecurrentOptions& options, std::int64_t width) {
  Initializer start = init::uniform(options.init_range);
  start.fixed_begin = width;
  start.fixed_end = 2 * width;
  start.fixed = 1;
  return start;
}

/// [x_t; x_{t-1}; ...]: every tap is a slice of its own, one position older than the one before.
Variable tapped(const Variable& x, const Tensor& before, const Tensor& preceding, std::int64_t taps) {
  if (taps == 1) return x;
  const Variable rows = before && before.shape()[1] > 0 ? concat(std::array{x.tape().constant(before), x}, 1) : x;
  const std::pmr::vector<Variable> same(static_cast<std::size_t>(taps), rows, x.tape().step().objects());
  return delayed_slices(concat(same, -1), preceding, taps);
}

}  // namespace

QuasiRecurrentLayer::QuasiRecurrentLayer(const RecurrentOptions& options, std::int64_t layer)
    : taps_(options.layer_taps(layer)),
      weight_dropout_(options.weight_dropout),
      input_({3 * options.layer_width(layer), taps_ * options.layer_input(layer)}, init::uniform(options.init_range)),
      bias_({3 * options.layer_width(layer)}, quasi_bias_start(options, options.layer_width(layer))) {}

EncoderStates QuasiRecurrentLayer::forward(const Variable& x, const EncoderStart& start, const Tensor& preceding) {
  Tape& tape = x.tape();
  const Variable seen = tapped(x, start.inputs, preceding, taps_);
  Recurrence result = quasi_recurrence(
      linear(seen, dropout(tape.parameter(input_), weight_dropout_), tape.parameter(bias_)), start.cells, preceding);
  Tensor states = result.outputs.value();
  return {.states = std::move(result.outputs),
          .recurrent = std::move(states),
          .cells = std::move(result.cells),
          .inputs = x.value()};
}

void QuasiRecurrentLayer::visit(Visitor& visit) {
  visit("input", input_);
  visit("bias", bias_);
}

}  // namespace engram
