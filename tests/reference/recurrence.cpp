#include "tests/reference/recurrence.hpp"

namespace engram::reference {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// Element `unit` of the state `delay` steps before t: of this chunk, of what came before it, or zero.
double earlier(const Array64& chunk, const Array64& before, const Array64& preceding, std::int64_t b, std::int64_t t,
               std::int64_t delay, std::int64_t unit) {
  if (preceding.at(b, t) < static_cast<double>(delay)) return 0;
  if (t >= delay) return chunk.at(b, t - delay, unit);
  const std::int64_t rows = before.given() ? before.axis(1) : 0;
  const std::int64_t row = rows + t - delay;
  return row >= 0 ? before.at(b, row, unit) : 0;
}

/// Row `row` of the weight times the hidden state `delay` steps before t.
double met(const Array64& weight, std::int64_t row, const Array64& hidden, const RecurrencePast& past, std::int64_t b,
           std::int64_t t, std::int64_t delay) {
  double sum = 0;
  for (std::int64_t j = 0; j < hidden.axis(2); ++j)
    sum += weight.at(row, j) * earlier(hidden, past.hidden, past.preceding, b, t, delay, j);
  return sum;
}

/// Calls unit(b, t, i) in the order of time.
template <class Unit>
void each(const Array64& hidden, Unit&& unit) {
  for (std::int64_t t = 0; t < hidden.axis(1); ++t)
    for (std::int64_t b = 0; b < hidden.axis(0); ++b)
      for (std::int64_t i = 0; i < hidden.axis(2); ++i) unit(b, t, i);
}

}  // namespace

Array64 elman(const Array64& inputs, const Array64& weight, const RecurrencePast& past) {
  Array64 hidden = zeros(inputs.shape);
  each(hidden, [&](std::int64_t b, std::int64_t t, std::int64_t i) {
    hidden.at(b, t, i) = std::tanh(inputs.at(b, t, i) + met(weight, i, hidden, past, b, t, 1));
  });
  return hidden;
}

Lstm lstm(const Array64& inputs, const Array64& weight, const RecurrencePast& past) {
  const std::int64_t units = weight.axis(1);
  Lstm result{zeros({inputs.axis(0), inputs.axis(1), units}), zeros({inputs.axis(0), inputs.axis(1), units})};
  each(result.hidden, [&](std::int64_t b, std::int64_t t, std::int64_t unit) {
    const auto activation = [&](std::int64_t block) {
      const std::int64_t row = block * units + unit;
      return inputs.at(b, t, row) + met(weight, row, result.hidden, past, b, t, 1);
    };
    const double i = sigmoid(activation(0)), f = sigmoid(activation(1)), g = std::tanh(activation(2)),
                 o = sigmoid(activation(3));
    const double cell = f * earlier(result.cells, past.cells, past.preceding, b, t, 1, unit) + i * g;
    result.cells.at(b, t, unit) = cell;
    result.hidden.at(b, t, unit) = o * std::tanh(cell);
  });
  return result;
}

Array64 hornn_fofe(const Array64& inputs, const Array64& weight, const RecurrencePast& past, int order, double decay) {
  Array64 hidden = zeros(inputs.shape);
  const std::int64_t units = weight.axis(1);
  each(hidden, [&](std::int64_t b, std::int64_t t, std::int64_t i) {
    double sum = inputs.at(b, t, i);
    for (int m = 1; m <= order; ++m)
      sum += std::pow(decay, m) * met(weight, (m - 1) * units + i, hidden, past, b, t, m);
    hidden.at(b, t, i) = std::tanh(sum);
  });
  return hidden;
}

Array64 hornn_gated(const Array64& inputs, const Array64& weight, const RecurrencePast& past, int order) {
  const std::int64_t units = weight.axis(1);
  Array64 hidden = zeros({inputs.axis(0), inputs.axis(1), units});
  each(hidden, [&](std::int64_t b, std::int64_t t, std::int64_t i) {
    double sum = inputs.at(b, t, i);
    for (int m = 1; m <= order; ++m) {
      const double gate =
          sigmoid(inputs.at(b, t, m * units + i) + met(weight, (order + m - 1) * units + i, hidden, past, b, t, m));
      sum += gate * met(weight, (m - 1) * units + i, hidden, past, b, t, m);
    }
    hidden.at(b, t, i) = std::tanh(sum);
  });
  return hidden;
}

Lstm fo_pooling(const Array64& inputs, const RecurrencePast& past) {
  const std::int64_t units = inputs.axis(2) / 3;
  Lstm result{zeros({inputs.axis(0), inputs.axis(1), units}), zeros({inputs.axis(0), inputs.axis(1), units})};
  each(result.hidden, [&](std::int64_t b, std::int64_t t, std::int64_t unit) {
    const double z = std::tanh(inputs.at(b, t, unit)), f = sigmoid(inputs.at(b, t, units + unit)),
                 o = sigmoid(inputs.at(b, t, 2 * units + unit));
    const double cell = f * earlier(result.cells, past.cells, past.preceding, b, t, 1, unit) + (1 - f) * z;
    result.cells.at(b, t, unit) = cell;
    result.hidden.at(b, t, unit) = o * cell;
  });
  return result;
}

}  // namespace engram::reference
