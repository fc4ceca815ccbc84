#include "autograd/functions/recurrence.hpp"

#include "autograd/tape.hpp"
#include "core/check.hpp"
#include "core/error.hpp"
#include "core/kernels/copy.hpp"
#include "core/kernels/matmul.hpp"
#include "core/kernels/recurrence.hpp"

namespace engram {
namespace {

/// Whether the backward pass reads what the forward pass leaves in the place of the inputs.
bool keeps_gates(RecurrentCell cell) { return cell == RecurrentCell::lstm || cell == RecurrentCell::hornn_gated; }
bool keeps_products(RecurrentCell cell) { return cell == RecurrentCell::hornn_gated; }

struct RecurrenceNode final : Node {
  RecurrenceInputs in;
  Tensor gates;     // [B, M, blocks k]
  Tensor products;  // [N + M - 1, B, G k]
  Tensor outputs;   // [B, M, k]
  Tensor cells;     // [B, M, k]

  std::string_view name() const override { return "recurrence"; }
  std::vector<Saved> saved() const override {
    std::vector<Saved> kept{{"weight", in.weight}, {"outputs", outputs}};
    if (gates) kept.push_back({"gates", gates});
    if (products) kept.push_back({"products", products});
    if (cells) kept.push_back({"cells", cells});
    return kept;
  }
  void backward(Step& step, Backward& pass) override {
    const Shape& shape = outputs.shape();
    const RecurrenceOptions& options = in.options;
    if (!gates) gates = step.empty(shape.with(-1, options.input_blocks() * shape[2]), outputs.dtype());
    if (options.higher_order() && !products)
      products =
          step.empty({options.order + shape[1] - 1, shape[0], options.weight_blocks() * shape[2]}, outputs.dtype());
    kernels::recurrence_backward(step, in, outputs, cells, pass.output_grad(), gates, products);
    if (Target dweight = pass.input_grad(1)) {
      Tensor& gradients = options.higher_order() ? products : gates;
      Tensor states = step.empty(gradients.shape().with(-1, shape[2]), outputs.dtype());
      kernels::recurrence_states(step, in, outputs, states);
      kernels::matmul(step, MatrixView::flat(gradients), kernels::Transpose::yes, MatrixView::flat(states),
                      kernels::Transpose::no, MatrixView::of(dweight.tensor), 1, 1.0, dweight.write);
    }
    pass.give(0, std::move(gates));
  }
};

/// Rows of states before the first step: [B, rows, k], also where none were given.
Tensor start_rows(Step& step, std::string_view what, const Tensor& given, const Variable& inputs, std::int64_t units) {
  const std::int64_t streams = inputs.shape()[0];
  if (!given) return step.empty({streams, 0, units}, inputs.dtype());
  if (given.shape().rank() != 3 || given.shape()[0] != streams || given.shape()[2] != units)
    throw ShapeError(text("recurrence: ", what, " must be [B, rows, k] with B = ", streams, " and k = ", units,
                          ", got ", given.shape()));
  check_dtype("recurrence", what, given, inputs.dtype());
  check_same_device("recurrence", inputs.value(), given);
  return given;
}

void check_arguments(const Variable& inputs, const Variable& weight, const Tensor& preceding,
                     const RecurrenceOptions& options) {
  if (options.cell == RecurrentCell::qrnn)
    throw UsageError("recurrence: the cell must multiply earlier states, got qrnn\n  quasi_recurrence() computes it");
  if (options.higher_order() && options.order < 1)
    throw UsageError(
        text("recurrence: the order of ", name_of(options.cell), " must be at least 1, got ", options.order));
  if (options.cell == RecurrentCell::hornn_fofe && !(options.decay > 0 && options.decay <= 1))
    throw UsageError(text("recurrence: the decay of hornn_fofe must be above 0 and at most 1, got ", options.decay));
  if (inputs.dtype() != DType::f32 && inputs.dtype() != DType::f64)
    throw DTypeError(text("recurrence: inputs must be f32 or f64, got ", inputs.dtype(),
                          "\n  linear(x, weight, bias, ProductResult::summed) gives f32 of bf16 operands"));
  const Shape& shape = inputs.shape();
  const int blocks = options.input_blocks(), matrices = options.weight_blocks();
  if (shape.rank() != 3 || shape[1] < 1 || shape[2] < 1 || shape[2] % blocks != 0)
    throw ShapeError(text("recurrence: inputs of ", name_of(options.cell), " must be [B, M, ", blocks,
                          " k] with M and k at least 1, got ", shape));
  const std::int64_t units = shape[2] / blocks;
  check_shape("recurrence", "weight", weight.value(), {matrices * units, units});
  check_dtype("recurrence", "weight", weight.value(), inputs.dtype());
  check_same_device("recurrence", inputs.value(), weight.value());
  check_shape("recurrence", "preceding", preceding, {shape[0], shape[1]});
  check_dtype("recurrence", "preceding", preceding, DType::i32);
  check_same_device("recurrence", inputs.value(), preceding);
}

}  // namespace

Recurrence recurrence(Variable inputs, const Variable& weight, const RecurrentStart& start, const Tensor& preceding,
                      const RecurrenceOptions& options) {
  check_arguments(inputs, weight, preceding, options);
  Tape& tape = inputs.tape();
  Step& step = tape.step();
  const std::int64_t streams = inputs.shape()[0], steps = inputs.shape()[1];
  const std::int64_t units = inputs.shape()[2] / options.input_blocks();
  const DType dtype = inputs.dtype();
  RecurrenceNode node;
  node.in = {.weight = weight.value(),
             .hidden = start_rows(step, "hidden", start.hidden, inputs, units),
             .cells = start_rows(step, "cells", start.cells, inputs, units),
             .preceding = preceding,
             .options = options};
  const Variable place = inputs.without_value();
  Tensor gates = inputs.value();
  inputs = {};
  if (keeps_gates(options.cell) && gates.use_count() > 1) {
    Tensor own = step.empty(gates.shape(), dtype);
    kernels::accumulate(step, gates, 1.0, {own, Write::set});
    gates = std::move(own);
  }
  Tensor products;
  if (options.higher_order())
    products = step.empty({options.order + steps - 1, streams, options.weight_blocks() * units}, dtype);
  node.outputs = step.empty({streams, steps, units}, dtype);
  if (options.cell == RecurrentCell::lstm) node.cells = step.empty({streams, steps, units}, dtype);
  kernels::recurrence_forward(step, node.in, gates, products, node.outputs, node.cells);
  if (keeps_gates(options.cell)) node.gates = std::move(gates);
  if (keeps_products(options.cell)) node.products = std::move(products);
  Recurrence result{.outputs = {}, .cells = node.cells};
  Tensor outputs = node.outputs;
  result.outputs = tape.record(std::move(node), {place, weight}, std::move(outputs));
  return result;
}

}  // namespace engram
