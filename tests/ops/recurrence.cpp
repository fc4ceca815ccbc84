/// The op table's rows of recurrent layers.

#include "autograd/functions/recurrence.hpp"

#include "autograd/tape.hpp"
#include "tests/harness/op_table.hpp"
#include "tests/reference/recurrence.hpp"

namespace engram::harness::recurrence_test {
namespace {

RecurrentStart start_of(std::span<const Variable> x) {
  return {x[3] ? x[3].value() : Tensor{}, x[4] ? x[4].value() : Tensor{}};
}

/// Arguments: inputs, weight, preceding, hidden, cells.
Function function(const RecurrenceOptions& options) {
  return Function([options](std::span<const Variable> x) {
    Recurrence result = recurrence(x[0], x[1], start_of(x), x[2].value(), options);
    std::vector<Variable> outputs{result.outputs};
    if (result.cells) outputs.push_back(x[0].tape().constant(result.cells));
    return outputs;
  });
}

std::vector<Array64> defined(const RecurrenceOptions& options, std::span<const Array64> x) {
  const reference::RecurrencePast past{.hidden = x[3], .cells = x[4], .preceding = x[2]};
  switch (options.cell) {
    case RecurrentCell::rnn:
      return {reference::elman(x[0], x[1], past)};
    case RecurrentCell::lstm: {
      reference::Lstm result = reference::lstm(x[0], x[1], past);
      return {std::move(result.hidden), std::move(result.cells)};
    }
    case RecurrentCell::hornn_fofe:
      return {reference::hornn_fofe(x[0], x[1], past, options.order, options.decay)};
    default:
      return {reference::hornn_gated(x[0], x[1], past, options.order)};
  }
}

/// Positions before each of B x M: streams whose sequences begin at the given steps, and which have `before` positions
/// of their first sequence behind them.
Input preceding(std::int64_t steps, const std::vector<std::vector<std::int64_t>>& resets,
                const std::vector<std::int64_t>& before) {
  std::vector<double> counts;
  for (std::size_t b = 0; b < resets.size(); ++b) {
    std::int64_t count = before[b];
    for (std::int64_t t = 0; t < steps; ++t) {
      for (const std::int64_t reset : resets[b])
        if (reset == t) count = 0;
      counts.push_back(static_cast<double>(count++));
    }
  }
  return integers({static_cast<std::int64_t>(resets.size()), steps}, counts);
}

/// Arguments of one set: `rows` hidden states and `cell_rows` cells before the chunk, -1: none are given.
std::vector<Input> set(const RecurrenceOptions& options, std::int64_t steps, std::int64_t units,
                       const std::vector<std::vector<std::int64_t>>& resets, const std::vector<std::int64_t>& before,
                       std::int64_t rows, std::int64_t cell_rows) {
  const auto streams = static_cast<std::int64_t>(resets.size());
  // Of a size that leaves the gates away from their ends.
  const double scale = 1.5 / std::sqrt(static_cast<double>(units));
  return {normal({streams, steps, options.input_blocks() * units}),
          uniform({options.weight_blocks() * units, units}, -scale, scale), preceding(steps, resets, before),
          rows < 0 ? absent() : uniform({streams, rows, units}, -1, 1).constant(),
          cell_rows < 0 ? absent() : uniform({streams, cell_rows, units}, -1, 1).constant()};
}

OpCase layer(std::string name, const RecurrenceOptions& options) {
  const bool lstm = options.cell == RecurrentCell::lstm;
  const std::int64_t order = options.history();
  OpCase op;
  op.name = "recurrence, " + std::move(name);
  op.function = function(options);
  op.reference = [options](std::span<const Array64> x) { return defined(options, x); };
  op.inputs = {
      // The first steps of two streams; one step alone, with a past and without.
      set(options, 5, 3, {{0}, {0}}, {0, 0}, -1, -1),
      set(options, 1, 3, {{}, {0}, {}}, {7, 0, 1}, order, lstm ? 1 : -1),
      set(options, 1, 1, {{0}}, {0}, 0, 0),
      set(options, 1, 67, {{}, {}, {0}, {}}, {5, 2, 5, 1}, order, lstm ? 1 : -1),
      // Sequences that begin at the first, second, last and other steps, and one that goes on.
      set(options, 6, 5, {{0}, {1}, {5}, {0, 3, 4}, {}, {2}}, {0, 9, 9, 0, 30, 1}, order, lstm ? 1 : -1),
      // More rows than are read, and fewer than the counts promise.
      set(options, 4, 2, {{}, {2}}, {20, 2}, order + 2, lstm ? 3 : -1),
      set(options, 4, 2, {{}, {1}}, {20, 20}, order - 1, lstm ? 0 : -1),
      // More units and streams than a piece of the work takes.
      set(options, 3, 67, {{}, {1}, {}, {2}, {0}, {}, {}}, {9, 9, 9, 9, 9, 9, 1}, order, lstm ? 1 : -1),
  };
  return op;
}

OpCase many_streams() {
  const RecurrenceOptions options{.cell = RecurrentCell::lstm};
  OpCase op = layer("lstm of many streams", options);
  std::vector<std::vector<std::int64_t>> resets(103);
  std::vector<std::int64_t> before(103, 4);
  resets[100] = {1};
  op.inputs = {set(options, 2, 17, resets, before, 1, 1)};
  return op;
}

OpCase refused() {
  const RecurrenceOptions options{.cell = RecurrentCell::lstm};
  OpCase op = layer("wrong calls", options);
  op.inputs = {set(options, 2, 3, {{0}, {0}}, {0, 0}, -1, -1)};
  const Input inputs = normal({2, 4, 12}), weight = normal({12, 3}), counts = index({2, 4}, 2);
  const auto state = [](Shape shape) { return normal(shape).constant(); };
  const auto with = [](RecurrentCell cell, int order, double decay) {
    return function({.cell = cell, .order = order, .decay = decay});
  };
  op.errors = {
      {.inputs = {normal({4, 12}), weight, counts, absent(), absent()}, .contains = {"lstm", "[B, M, 4 k]", "[4, 12]"}},
      {.inputs = {normal({2, 4, 10}), weight, counts, absent(), absent()}, .contains = {"[B, M, 4 k]", "[2, 4, 10]"}},
      {.inputs = {normal({2, 0, 12}), weight, counts, absent(), absent()}, .contains = {"at least 1", "[2, 0, 12]"}},
      {.inputs = {inputs, normal({12, 4}), counts, absent(), absent()}, .contains = {"weight", "[12, 3]", "[12, 4]"}},
      {.inputs = {inputs, index({12, 3}, 2), counts, absent(), absent()}, .contains = {"weight", "f32", "i32"}},
      {.inputs = {inputs, weight, index({2, 3}, 2), absent(), absent()}, .contains = {"preceding", "[2, 4]", "[2, 3]"}},
      {.inputs = {inputs, weight, state({2, 4}), absent(), absent()}, .contains = {"preceding", "i32", "f32"}},
      {.inputs = {inputs, weight, counts, state({1, 1, 3}), absent()},
       .contains = {"hidden", "[B, rows, k]", "B = 2", "k = 3", "[1, 1, 3]"}},
      {.inputs = {inputs, weight, counts, state({2, 1, 3}), state({2, 1, 4})}, .contains = {"cells", "[2, 1, 4]"}},
      {.inputs = {inputs, weight, counts, index({2, 1, 3}, 2), absent()}, .contains = {"hidden", "f32", "i32"}},
      {.inputs = {index({2, 4, 12}, 2), weight, counts, absent(), absent()},
       .contains = {"inputs must be f32 or f64", "i32"}},
      {.inputs = {inputs, weight, counts, absent(), absent()},
       .contains = {"must multiply earlier states", "got qrnn", "quasi_recurrence()"},
       .function = with(RecurrentCell::qrnn, 1, 0.5)},
      {.inputs = {inputs, weight, counts, absent(), absent()},
       .contains = {"order of hornn_gated", "at least 1", "got 0"},
       .function = with(RecurrentCell::hornn_gated, 0, 0.5)},
      {.inputs = {inputs, weight, counts, absent(), absent()},
       .contains = {"decay of hornn_fofe", "at most 1", "got 0"},
       .function = with(RecurrentCell::hornn_fofe, 2, 0)},
      {.inputs = {inputs, weight, counts, absent(), absent()},
       .contains = {"decay of hornn_fofe", "got 1.5"},
       .function = with(RecurrentCell::hornn_fofe, 2, 1.5)},
  };
  return op;
}

const OpCases cases{
    layer("rnn", {.cell = RecurrentCell::rnn}),
    layer("lstm", {.cell = RecurrentCell::lstm}),
    layer("fofe of order 1", {.cell = RecurrentCell::hornn_fofe, .order = 1, .decay = 1}),
    layer("fofe of order 3", {.cell = RecurrentCell::hornn_fofe, .order = 3, .decay = 0.6}),
    layer("gated of order 1", {.cell = RecurrentCell::hornn_gated, .order = 1}),
    layer("gated of order 3", {.cell = RecurrentCell::hornn_gated, .order = 3}),
    many_streams(),
    refused(),
};

}  // namespace
}  // namespace engram::harness::recurrence_test
