#include "tests/exercises/10_slots.hpp"

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace engram::exercises {
namespace {

double slot_product(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// What query t sees: positions 0 .. t, and behind them the slots.
std::vector<std::span<const double>> seen_rows(const Matrix& context, const Matrix& slots, int t) {
  std::vector<std::span<const double>> rows;
  for (int j = 0; j <= t; ++j) rows.push_back(context.row(j));
  for (int n = 0; n < slots.rows(); ++n) rows.push_back(slots.row(n));
  return rows;
}

/// The weights of query t, in the order of seen_rows.
std::vector<double> slot_weights(const SlotInputs& in, int t) {
  std::vector<double> weights;
  double sum = 0;
  for (const std::span<const double> key : seen_rows(in.k, in.slot_keys, t)) {
    weights.push_back(std::exp(slot_product(in.q.row(t), key) / std::sqrt(in.q.columns())));
    sum += weights.back();
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

}  // namespace

Matrix attention_with_slots(const SlotInputs& inputs) {
  Matrix y(inputs.q.rows(), inputs.q.columns());
  for (int t = 0; t < y.rows(); ++t) {
    const std::vector<double> weights = slot_weights(inputs, t);
    const std::vector<std::span<const double>> values = seen_rows(inputs.v, inputs.slot_values, t);
    for (std::size_t i = 0; i < values.size(); ++i)
      for (int c = 0; c < y.columns(); ++c) y(t, c) += weights[i] * values[i][static_cast<std::size_t>(c)];
  }
  return y;
}

void slots_backward(const SlotInputs& inputs, const Matrix& dy, Matrix& dslot_keys, Matrix& dslot_values) {
  const int slots = inputs.slot_keys.rows(), width = inputs.q.columns();
  dslot_keys = dslot_values = Matrix(slots, width);
  for (int t = 0; t < inputs.q.rows(); ++t) {
    const std::vector<double> weights = slot_weights(inputs, t);
    const std::vector<std::span<const double>> values = seen_rows(inputs.v, inputs.slot_values, t);
    double mean = 0;  // over positions and slots: they share one softmax
    for (std::size_t i = 0; i < values.size(); ++i) mean += weights[i] * slot_product(dy.row(t), values[i]);
    for (int n = 0; n < slots; ++n) {
      const std::size_t i = static_cast<std::size_t>(t + 1 + n);
      const double ds = weights[i] * (slot_product(dy.row(t), values[i]) - mean) / std::sqrt(width);
      for (int c = 0; c < width; ++c) {
        dslot_keys(n, c) += ds * inputs.q(t, c);
        dslot_values(n, c) += weights[i] * dy(t, c);
      }
    }
  }
}

}  // namespace engram::exercises
