#include "tests/reference/recurrent_model.hpp"

#include <cmath>

namespace engram::reference {
namespace {

using Vector = std::vector<double>;
using Vectors = std::vector<Vector>;

double squeezed(double x) { return 1 / (1 + std::exp(-x)); }

/// Row `row` of the matrix, from this column on, times x.
double row_times(const Array64& matrix, std::int64_t row, std::int64_t column, const Vector& x) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += matrix.at(row, column + std::int64_t(i)) * x[i];
  return sum;
}

Vectors lstm_states(const EncoderWeights& layer, const Vectors& inputs) {
  const std::int64_t units = layer.recurrent.axis(1);
  Vector h(std::size_t(units), 0.0), c = h;
  Vectors states;
  for (const Vector& x : inputs) {
    Vector next(h.size());
    for (std::int64_t u = 0; u < units; ++u) {
      const auto gate = [&](std::int64_t block) {
        const std::int64_t row = block * units + u;
        return layer.bias.at(row) + row_times(layer.input, row, 0, x) + row_times(layer.recurrent, row, 0, h);
      };
      double& cell = c[std::size_t(u)];
      cell = squeezed(gate(1)) * cell + squeezed(gate(0)) * std::tanh(gate(2));
      next[std::size_t(u)] = squeezed(gate(3)) * std::tanh(cell);
    }
    h = next;
    states.push_back(h);
  }
  return states;
}

Vectors quasi_states(const EncoderWeights& layer, const Vectors& inputs) {
  const std::int64_t units = layer.bias.axis(0) / 3;
  Vector c(std::size_t(units), 0.0);
  Vectors states;
  for (std::size_t t = 0; t < inputs.size(); ++t) {
    const auto width = std::int64_t(inputs[t].size()), taps = layer.input.axis(1) / width;
    Vector h;
    for (std::int64_t u = 0; u < units; ++u) {
      const auto gate = [&](std::int64_t block) {
        double sum = layer.bias.at(block * units + u);
        for (std::int64_t s = 0; s < taps && s <= std::int64_t(t); ++s)
          sum += row_times(layer.input, block * units + u, s * width, inputs[t - std::size_t(s)]);
        return sum;
      };
      const double forget = squeezed(gate(1));
      double& cell = c[std::size_t(u)];
      cell = forget * cell + (1 - forget) * std::tanh(gate(0));
      h.push_back(squeezed(gate(2)) * cell);
    }
    states.push_back(h);
  }
  return states;
}

}  // namespace

std::vector<double> RecurrentLanguageModel::losses(const std::vector<std::int64_t>& inputs,
                                                   const std::vector<std::int64_t>& targets) const {
  Vectors states;
  for (const std::int64_t word : inputs) {
    Vector x = ends.embedding(word);
    const double factor = std::sqrt(double(x.size()));
    for (double& number : x) number /= factor;
    states.push_back(x);
  }
  for (const EncoderWeights& layer : layers)
    states = layer.recurrent.given() ? lstm_states(layer, states) : quasi_states(layer, states);
  std::vector<double> found;
  for (std::size_t t = 0; t < targets.size(); ++t)
    found.push_back(-ends.log_probabilities(states[t]).at(std::size_t(targets[t])));
  return found;
}

}  // namespace engram::reference
