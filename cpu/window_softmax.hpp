#pragma once
/// The softmax of a position's scores over its window, and its way back: what all attentions over short windows share.

#include <algorithm>
#include <cstdint>

#include "core/window_rule.hpp"
#include "cpu/exponentials.hpp"

namespace engram::cpu {

/// How many columns of a position that sees `seen` rows take part: the last ones.
inline std::int64_t counted_columns(const WindowRule& rule, std::int64_t seen) {
  return rule.count_missing ? rule.window : seen;
}

/// The scores in the last `counted` columns become weights; the others 0.
template <class T>
void window_softmax(T* row, std::int64_t window, std::int64_t counted) {
  std::fill_n(row, window - counted, T(0));
  if (counted == 0) return;
  T* const scores = row + window - counted;
  const T largest = *std::max_element(scores, scores + counted);
  const T share = 1 / exponentials(scores, counted, largest);
  for (std::int64_t c = 0; c < counted; ++c) scores[c] *= share;
}

/// In the last `counted` columns of a row, gradients of weights become those of scores; the others are set to 0.
template <class T>
void window_softmax_gradient(const T* weights, T* row, std::int64_t window, std::int64_t counted) {
  std::fill_n(row, window - counted, T(0));
  double sum = 0;  // what follows is a small difference where one weight is nearly 1
  for (std::int64_t c = window - counted; c < window; ++c) sum += double(weights[c]) * double(row[c]);
  const T mean = static_cast<T>(sum);
  for (std::int64_t c = window - counted; c < window; ++c) row[c] = weights[c] * (row[c] - mean);
}

}  // namespace engram::cpu
