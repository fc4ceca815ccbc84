#include "nn/layers/recurrent_encoder.hpp"

#include <array>

#include "autograd/functions/concat.hpp"
#include "autograd/functions/linear.hpp"
#include "autograd/functions/pointwise.hpp"
#include "autograd/tape.hpp"
#include "core/kernels/fill.hpp"
#include "core/scope.hpp"
#include "nn/init.hpp"

namespace engram {
namespace {

Initializer bias_start(const RecurrentOptions& options) {
  Initializer start = init::uniform(options.init_range);
  if (options.encoder == RecurrentCell::lstm) {
    start.fixed_begin = options.width;
    start.fixed_end = 2 * options.width;
    start.fixed = 1;
  }
  return start;
}

}  // namespace

RecurrentEncoder::RecurrentEncoder(const RecurrentOptions& options)
    : recurrence_(options.recurrence()),
      input_({recurrence_.input_blocks() * options.width, options.vector_width()}, init::uniform(options.init_range)),
      recurrent_({recurrence_.weight_blocks() * options.width, options.width}, init::uniform(options.init_range)),
      bias_({(options.encoder == RecurrentCell::lstm ? 4 : 1) * options.width}, bias_start(options)) {
  if (options.output_map) output_.emplace(Shape{options.width, options.width}, init::uniform(options.init_range));
}

RecurrentEncoder::Result RecurrentEncoder::forward(const Variable& x, const RecurrentStart& start,
                                                   const Tensor& preceding) {
  Tape& tape = x.tape();
  Variable bias = tape.parameter(bias_);
  const std::int64_t unbiased = input_.shape()[0] - bias.shape()[0];
  if (unbiased > 0) {
    Tensor zeros = tape.step().empty({unbiased}, bias.dtype());
    kernels::fill(tape.step(), zeros, 0.0);
    bias = concat(std::array{bias, tape.constant(std::move(zeros))}, 0);
  }
  Recurrence result =
      recurrence(linear(x, tape.parameter(input_), bias), tape.parameter(recurrent_), start, preceding, recurrence_);
  Tensor states = result.outputs.value();
  Variable seen = output_ ? tanh(linear(result.outputs, tape.parameter(*output_))) : std::move(result.outputs);
  return {std::move(seen), std::move(states), std::move(result.cells)};
}

void RecurrentEncoder::visit(Visitor& visit) {
  visit("input", input_);
  visit("recurrent", recurrent_);
  visit("bias", bias_);
  if (output_) visit("output", *output_);
}

}  // namespace engram
