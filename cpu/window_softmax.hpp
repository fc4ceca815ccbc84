#pragma once
/// The softmax of a position's scores over its window, and its way back: what all attentions over short windows share.

#include <algorithm>
#include <cstdint>

#include "core/rules/window_rule.hpp"
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

/// In the last `counted` columns of a row, gradients g of weights become those of scores, weight (g - mean of g); the
/// others are set to 0. Where one weight is nearly 1, that is what is left of a difference: so the mean is made again
/// of differences from the first one.
template <class T>
void window_softmax_gradient(const T* weights, T* row, std::int64_t window, std::int64_t counted) {
  std::fill_n(row, window - counted, T(0));
  const auto mean = [=] {
    T sum = 0;
    for (std::int64_t c = window - counted; c < window; ++c) sum += weights[c] * row[c];
    return sum;
  };
  const T rough = mean();
  for (std::int64_t c = window - counted; c < window; ++c) row[c] -= rough;
  const T rest = mean();
  for (std::int64_t c = window - counted; c < window; ++c) row[c] = weights[c] * (row[c] - rest);
}

}  // namespace engram::cpu
