#include "tests/reference/basic_ops.hpp"

#include <algorithm>
#include <cmath>

namespace engram::reference {
namespace {

template <class Function>
Array64 map(const Array64& x, Function function) {
  Array64 y = x;
  for (double& value : y.data) value = function(value);
  return y;
}

/// The same numbers under another shape.
Array64 reshaped(const Array64& x, std::vector<std::int64_t> shape) { return array(std::move(shape), x.data); }

/// x [..., C] as [rows, C].
Array64 as_matrix(const Array64& x) {
  const std::int64_t width = x.axis(-1);
  std::int64_t rows = 1;
  for (int a = 0; a + 1 < x.rank(); ++a) rows *= x.axis(a);
  return reshaped(x, {rows, width});
}

/// x as [before, axis, after], for operations along one axis.
Array64 around_axis(const Array64& x, int axis) {
  std::int64_t before = 1, after = 1;
  for (int a = 0; a < axis; ++a) before *= x.axis(a);
  for (int a = axis + 1; a < x.rank(); ++a) after *= x.axis(a);
  return reshaped(x, {before, x.axis(axis), after});
}

/// x [..., r, c] as [batch, r, c].
Array64 as_matrices(const Array64& x) {
  require(x.rank() >= 2, "matmul: at least two axes");
  std::int64_t batch = 1;
  for (int a = 0; a + 2 < x.rank(); ++a) batch *= x.axis(a);
  return reshaped(x, {batch, x.axis(-2), x.axis(-1)});
}

}  // namespace

Array64 add(const Array64& a, const Array64& b) {
  require(a.shape == b.shape, "add: equal shapes");
  Array64 y = a;
  for (std::size_t k = 0; k < y.data.size(); ++k) y.data[k] += b.data[k];
  return y;
}

Array64 multiply(const Array64& a, const Array64& b) {
  Array64 y = a;
  require(
      b.shape == a.shape || (b.axis(-1) == 1 && b.data.size() * static_cast<std::size_t>(a.axis(-1)) == a.data.size()),
      "multiply: equal shapes, or a number for each row");
  const std::size_t times = a.data.size() / b.data.size();
  for (std::size_t k = 0; k < y.data.size(); ++k) y.data[k] *= b.data[k / times];
  return y;
}

Array64 add_bias(const Array64& x, const Array64& bias) {
  require(bias.rank() == 1 && x.axis(-1) == bias.axis(0), "add_bias: one number for every column");
  Array64 y = x;
  for (std::size_t k = 0; k < y.data.size(); ++k) y.data[k] += bias.data[k % bias.data.size()];
  return y;
}

Array64 scale(const Array64& x, double factor) {
  return map(x, [factor](double value) { return factor * value; });
}

double sum(const Array64& x) {
  double total = 0;
  for (const double value : x.data) total += value;
  return total;
}

Array64 relu(const Array64& x) {
  return map(x, [](double value) { return value > 0 ? value : 0.0; });
}

Array64 gelu(const Array64& x) {
  return map(x, [](double value) { return 0.5 * value * (1 + std::erf(value / std::sqrt(2.0))); });
}

Array64 tanh(const Array64& x) {
  return map(x, [](double value) { return std::tanh(value); });
}

Array64 sigmoid(const Array64& x) {
  return map(x, [](double value) {
    const double small = std::exp(-std::abs(value));
    return value >= 0 ? 1 / (1 + small) : small / (1 + small);
  });
}

Array64 silu(const Array64& x) { return multiply(x, sigmoid(x)); }

Array64 linear(const Array64& x, const Array64& weight, const Array64& bias) {
  require(weight.rank() == 2 && x.axis(-1) == weight.axis(1), "linear: x [..., in], weight [out, in]");
  const std::int64_t out = weight.axis(0), in = weight.axis(1);
  require(!bias.given() || bias.shape == std::vector<std::int64_t>{out}, "linear: bias [out]");
  const Array64 input = as_matrix(x);
  Array64 y = zeros({input.axis(0), out});
  for (std::int64_t r = 0; r < input.axis(0); ++r)
    for (std::int64_t o = 0; o < out; ++o) {
      double total = bias.given() ? bias.at(o) : 0.0;
      for (std::int64_t i = 0; i < in; ++i) total += input.at(r, i) * weight.at(o, i);
      y.at(r, o) = total;
    }
  std::vector<std::int64_t> shape = x.shape;
  shape.back() = out;
  return reshaped(y, shape);
}

Array64 matmul(const Array64& a, const Array64& b, bool transpose_a, bool transpose_b) {
  require(a.rank() == b.rank() && a.rank() >= 2, "matmul: equal ranks of at least two");
  require(std::equal(a.shape.begin(), a.shape.end() - 2, b.shape.begin()), "matmul: equal leading axes");
  const Array64 left = as_matrices(a), right = as_matrices(b);
  const std::int64_t m = left.axis(transpose_a ? 2 : 1), inner = left.axis(transpose_a ? 1 : 2);
  const std::int64_t n = right.axis(transpose_b ? 1 : 2);
  require(inner == right.axis(transpose_b ? 2 : 1), "matmul: equal inner sizes");
  Array64 y = zeros({left.axis(0), m, n});
  for (std::int64_t batch = 0; batch < left.axis(0); ++batch)
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t k = 0; k < inner; ++k)
          y.at(batch, i, j) += (transpose_a ? left.at(batch, k, i) : left.at(batch, i, k)) *
                               (transpose_b ? right.at(batch, j, k) : right.at(batch, k, j));
  std::vector<std::int64_t> shape(a.shape.begin(), a.shape.end() - 2);
  shape.insert(shape.end(), {m, n});
  return reshaped(y, shape);
}

Array64 concat(const std::vector<Array64>& parts, int axis) {
  require(!parts.empty() && axis >= 0 && axis < parts.front().rank(), "concat: parts and an axis they have");
  std::vector<std::int64_t> shape = parts.front().shape;
  std::int64_t& joined = shape[static_cast<std::size_t>(axis)];
  joined = 0;
  for (const Array64& part : parts) {
    require(part.rank() == parts.front().rank(), "concat: equal ranks");
    for (int a = 0; a < part.rank(); ++a)
      require(a == axis || part.axis(a) == parts.front().axis(a), "concat: equal other axes");
    joined += part.axis(axis);
  }
  Array64 y = around_axis(zeros(shape), axis);
  std::int64_t begin = 0;
  for (const Array64& part : parts) {
    const Array64 source = around_axis(part, axis);
    for (std::int64_t i = 0; i < source.axis(0); ++i)
      for (std::int64_t j = 0; j < source.axis(1); ++j)
        for (std::int64_t k = 0; k < source.axis(2); ++k) y.at(i, begin + j, k) = source.at(i, j, k);
    begin += part.axis(axis);
  }
  return reshaped(y, shape);
}

Array64 slice(const Array64& x, int axis, std::int64_t begin, std::int64_t end) {
  require(axis >= 0 && begin >= 0 && begin <= end && end <= x.axis(axis), "slice: 0 <= begin <= end <= size");
  const Array64 source = around_axis(x, axis);
  std::vector<std::int64_t> shape = x.shape;
  shape[static_cast<std::size_t>(axis)] = end - begin;
  Array64 y = zeros({source.axis(0), end - begin, source.axis(2)});
  for (std::int64_t i = 0; i < y.axis(0); ++i)
    for (std::int64_t j = 0; j < y.axis(1); ++j)
      for (std::int64_t k = 0; k < y.axis(2); ++k) y.at(i, j, k) = source.at(i, begin + j, k);
  return reshaped(y, shape);
}

Array64 softmax(const Array64& x) {
  Array64 y = as_matrix(x);
  for (std::int64_t r = 0; r < y.axis(0); ++r) {
    double maximum = y.at(r, 0), total = 0;
    for (std::int64_t i = 0; i < y.axis(1); ++i) maximum = std::max(maximum, y.at(r, i));
    for (std::int64_t i = 0; i < y.axis(1); ++i) total += std::exp(y.at(r, i) - maximum);
    for (std::int64_t i = 0; i < y.axis(1); ++i) y.at(r, i) = std::exp(y.at(r, i) - maximum) / total;
  }
  return reshaped(y, x.shape);
}

CrossEntropy cross_entropy(const Array64& logits, const std::vector<std::int64_t>& targets,
                           const std::vector<double>& row_weights) {
  const Array64 scores = as_matrix(logits);
  const std::int64_t rows = scores.axis(0), vocabulary = scores.axis(1);
  require(static_cast<std::int64_t>(targets.size()) == rows && row_weights.size() == targets.size(),
          "cross_entropy: one target and one weight for every row");
  CrossEntropy result{0.0, zeros({rows})};
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t target = targets[static_cast<std::size_t>(r)];
    require(target >= 0 && target < vocabulary, "cross_entropy: targets in [0, V)");
    double maximum = scores.at(r, 0), total = 0;
    for (std::int64_t v = 0; v < vocabulary; ++v) maximum = std::max(maximum, scores.at(r, v));
    for (std::int64_t v = 0; v < vocabulary; ++v) total += std::exp(scores.at(r, v) - maximum);
    result.row_loss.at(r) = maximum + std::log(total) - scores.at(r, target);
    const double weight = row_weights[static_cast<std::size_t>(r)];
    if (weight != 0) result.loss += weight * result.row_loss.at(r);
  }
  return result;
}

LayerNorm layer_norm(const Array64& x, const Array64& residual, const Array64& gain, const Array64& bias,
                     double epsilon) {
  const std::int64_t width = x.axis(-1);
  require(gain.shape == std::vector<std::int64_t>{width} && bias.shape == gain.shape, "layer_norm: gain, bias [C]");
  LayerNorm result;
  result.sum = residual.given() ? add(x, residual) : x;
  Array64 y = as_matrix(result.sum);
  for (std::int64_t r = 0; r < y.axis(0); ++r) {
    double mean = 0, variance = 0;
    for (std::int64_t c = 0; c < width; ++c) mean += y.at(r, c);
    mean /= static_cast<double>(width);
    for (std::int64_t c = 0; c < width; ++c) variance += (y.at(r, c) - mean) * (y.at(r, c) - mean);
    variance /= static_cast<double>(width);
    for (std::int64_t c = 0; c < width; ++c)
      y.at(r, c) = gain.at(c) * (y.at(r, c) - mean) / std::sqrt(variance + epsilon) + bias.at(c);
  }
  result.normalised = reshaped(y, x.shape);
  return result;
}

Array64 embedding(const Array64& table, const std::vector<std::int64_t>& ids) {
  require(table.rank() == 2, "embedding: table [V, C]");
  const std::int64_t width = table.axis(1);
  Array64 y = zeros({static_cast<std::int64_t>(ids.size()), width});
  for (std::size_t i = 0; i < ids.size(); ++i)
    for (std::int64_t c = 0; c < width; ++c) y.at(i, c) = table.at(ids[i], c);
  return y;
}

Array64 weighted_rows(const Array64& values, const Array64& ids, const Array64& weights) {
  require(values.rank() == 2 && ids.rank() == 2 && ids.shape == weights.shape, "weighted_rows: [N, width], two [R, A]");
  Array64 selected = zeros({ids.axis(0), values.axis(0)});
  for (std::int64_t r = 0; r < ids.axis(0); ++r)
    for (std::int64_t j = 0; j < ids.axis(1); ++j)
      selected.at(r, static_cast<std::int64_t>(ids.at(r, j))) += weights.at(r, j);
  return matmul(selected, values);
}

}  // namespace engram::reference
