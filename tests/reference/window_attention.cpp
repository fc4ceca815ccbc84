#include "tests/reference/window_attention.hpp"

#include <optional>

namespace engram::reference {
namespace {

/// One position in the window of another: its row, or none.
using Place = std::optional<std::int64_t>;

/// The row of position t - delay of stream b, unless its sequence has not begun or it was not carried over.
Place earlier(const Array64& preceding, std::int64_t carried, std::int64_t b, std::int64_t t, std::int64_t delay) {
  const double sequence_start = static_cast<double>(t) - preceding.at(b, t);
  const std::int64_t position = t - delay;
  if (static_cast<double>(position) < sequence_start || position < -carried) return {};
  return position + carried;
}

/// Softmax over the given scores only.
std::vector<double> softmax_of(const std::vector<std::optional<double>>& scores) {
  double largest = -INFINITY, sum = 0;
  for (const auto& score : scores)
    if (score) largest = std::max(largest, *score);
  for (const auto& score : scores)
    if (score) sum += std::exp(*score - largest);
  std::vector<double> weights;
  for (const auto& score : scores) weights.push_back(score ? std::exp(*score - largest) / sum : 0);
  return weights;
}

}  // namespace

WindowAttention additive_window(const Array64& keys, const Array64& queries, const Array64& vector,
                                const Array64& values, const Array64& preceding, std::int64_t window,
                                bool pad_with_zeros) {
  const std::int64_t streams = queries.axis(0), block = queries.axis(1), width = queries.axis(2);
  const std::int64_t carried = keys.axis(1) - block, value_width = values.axis(2);
  WindowAttention result{zeros({streams, block, value_width}), zeros({streams, block, window})};
  for (std::int64_t b = 0; b < streams; ++b)
    for (std::int64_t t = 0; t < block; ++t) {
      std::vector<std::optional<double>> scores;
      std::vector<Place> places;
      for (std::int64_t offset = window; offset >= 1; --offset) {
        places.push_back(earlier(preceding, carried, b, t, offset));
        scores.emplace_back();
        if (!places.back() && !pad_with_zeros) continue;
        double score = 0;
        for (std::int64_t i = 0; i < width; ++i)
          score += vector.at(i) * std::tanh((places.back() ? keys.at(b, *places.back(), i) : 0) + queries.at(b, t, i));
        scores.back() = score;
      }
      const std::vector<double> weights = softmax_of(scores);
      for (std::int64_t c = 0; c < window; ++c) {
        const auto column = static_cast<std::size_t>(c);
        result.weights.at(b, t, c) = weights[column];
        if (!places[column]) continue;
        for (std::int64_t i = 0; i < value_width; ++i)
          result.context.at(b, t, i) += weights[column] * values.at(b, *places[column], i);
      }
    }
  return result;
}

WindowAttention dot_window(const Array64& keys, const Array64& queries, const Array64& values,
                           const Array64& position_keys, const Array64& position_values, const Array64& preceding,
                           std::int64_t window) {
  const std::int64_t streams = queries.axis(0), block = queries.axis(1), width = queries.axis(2);
  const std::int64_t carried = keys.axis(1) - block, value_width = values.axis(2);
  WindowAttention result{zeros({streams, block, value_width}), zeros({streams, block, window})};
  for (std::int64_t b = 0; b < streams; ++b)
    for (std::int64_t t = 0; t < block; ++t) {
      std::vector<std::optional<double>> scores;
      std::vector<Place> places;
      for (std::int64_t back = window - 1; back >= 0; --back) {
        places.push_back(earlier(preceding, carried, b, t, back));
        scores.emplace_back();
        if (!places.back()) continue;
        double score = 0;
        for (std::int64_t i = 0; i < width; ++i) {
          double key = keys.at(b, *places.back(), i);
          if (position_keys.given()) key += position_keys.at(window - 1 - back, i);
          score += key * queries.at(b, t, i);
        }
        scores.back() = score;
      }
      const std::vector<double> weights = softmax_of(scores);
      for (std::int64_t c = 0; c < window; ++c) {
        const auto column = static_cast<std::size_t>(c);
        result.weights.at(b, t, c) = weights[column];
        if (!places[column]) continue;
        for (std::int64_t i = 0; i < value_width; ++i) {
          double value = values.at(b, *places[column], i);
          if (position_values.given()) value += position_values.at(c, i);
          result.context.at(b, t, i) += weights[column] * value;
        }
      }
    }
  return result;
}

Array64 delayed_parts(const Array64& x, const Array64& preceding, std::int64_t parts) {
  const std::int64_t streams = preceding.axis(0), block = preceding.axis(1), width = x.axis(2);
  require(width % parts == 0, "delayed_parts: parts of equal width");
  Array64 result = zeros({streams, block, width});
  for (std::int64_t b = 0; b < streams; ++b)
    for (std::int64_t t = 0; t < block; ++t)
      for (std::int64_t i = 0; i < width; ++i)
        if (const Place row = earlier(preceding, x.axis(1) - block, b, t, i / (width / parts)))
          result.at(b, t, i) = x.at(b, *row, i);
  return result;
}

}  // namespace engram::reference
