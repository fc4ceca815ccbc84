#include "autograd/functions/quasi_recurrence.hpp"

#include "autograd/tape.hpp"
#include "core/check.hpp"
#include "core/error.hpp"
#include "core/kernels/copy.hpp"
#include "core/kernels/quasi_recurrence.hpp"

namespace engram {
namespace {

struct QuasiRecurrenceNode final : Node {
  Tensor start;      // [B, rows, k]
  Tensor preceding;  // [B, M]
  Tensor gates;      // [B, M, 3 k]
  Tensor cells;      // [B, M, k]

  std::string_view name() const override { return "quasi_recurrence"; }
  std::vector<Saved> saved() const override {
    return {{"start", start}, {"preceding", preceding}, {"gates", gates}, {"cells", cells}};
  }
  void backward(Step& step, Backward& pass) override {
    kernels::quasi_recurrence_backward(step, start, preceding, cells, pass.output_grad(), gates);
    pass.give(0, std::move(gates));
  }
};

Tensor first_cells(Step& step, const Tensor& given, const Variable& inputs, std::int64_t units) {
  const std::int64_t streams = inputs.shape()[0];
  if (!given) return step.empty({streams, 0, units}, inputs.dtype());
  if (given.shape().rank() != 3 || given.shape()[0] != streams || given.shape()[2] != units)
    throw ShapeError(text("quasi_recurrence: cells must be [B, rows, k] with B = ", streams, " and k = ", units,
                          ", got ", given.shape()));
  check_dtype("quasi_recurrence", "cells", given, inputs.dtype());
  check_same_device("quasi_recurrence", inputs.value(), given);
  return given;
}

}  // namespace

Recurrence quasi_recurrence(Variable inputs, const Tensor& cells, const Tensor& preceding) {
  const DType dtype = inputs.dtype();
  if (dtype != DType::f32 && dtype != DType::f64)
    throw DTypeError(text("quasi_recurrence: inputs must be f32 or f64, got ", dtype,
                          "\n  linear(x, weight, bias, ProductResult::summed) gives f32 of bf16 operands"));
  const Shape shape = inputs.shape();
  if (shape.rank() != 3 || shape[1] < 1 || shape[2] < 1 || shape[2] % 3 != 0)
    throw ShapeError(text("quasi_recurrence: inputs must be [B, M, 3 k] with M and k at least 1, got ", shape));
  check_shape("quasi_recurrence", "preceding", preceding, {shape[0], shape[1]});
  check_dtype("quasi_recurrence", "preceding", preceding, DType::i32);
  check_same_device("quasi_recurrence", inputs.value(), preceding);
  Tape& tape = inputs.tape();
  Step& step = tape.step();
  const Shape states = shape.with(-1, shape[2] / 3);
  QuasiRecurrenceNode node;
  node.start = first_cells(step, cells, inputs, states[2]);
  node.preceding = preceding;
  const Variable place = inputs.without_value();
  node.gates = inputs.value();
  inputs = {};
  if (node.gates.use_count() > 1) {
    Tensor own = step.empty(shape, dtype);
    kernels::accumulate(step, node.gates, 1.0, {own, Write::set});
    node.gates = std::move(own);
  }
  node.cells = step.empty(states, dtype);
  Tensor outputs = step.empty(states, dtype);
  kernels::quasi_recurrence_forward(step, node.start, preceding, node.gates, outputs, node.cells);
  Recurrence result{.outputs = {}, .cells = node.cells};
  result.outputs = tape.record(std::move(node), {place}, std::move(outputs));
  return result;
}

}  // namespace engram
