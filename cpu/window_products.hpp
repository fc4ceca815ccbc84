#pragma once
/// Products of every position's vector with the rows that it sees: scores, or gradients of weights.

#include "core/rules/window_rule.hpp"
#include "core/tensor.hpp"
#include "cpu/parallel.hpp"
#include "cpu/row_lanes.hpp"

namespace engram::cpu {

/// For every position, counted over the streams: result[place, column] = vectors[place, :] . (rows[b, j, :] +
/// position_rows[column, :]) in the columns of the rows j that it sees, 0 in the others, and then finish(place, seen).
/// result: [B, M, L]; vectors: [B, M, n]; the others as in core/kernels/window_rows.hpp.
template <class T, class Finish>
void for_window_products(const Tensor& rows, const Tensor& position_rows, const Tensor& vectors,
                         const Tensor& preceding, const WindowRule& rule, T* result, Finish&& finish) {
  const std::int64_t width = vectors.shape()[2], window = rule.window;
  const T* const in = rows.data<const T>();
  const T* const positions = position_rows ? position_rows.data<const T>() : nullptr;
  const T* const of_places = vectors.data<const T>();
  const std::int32_t* const before = preceding.data<const std::int32_t>();
  const std::int64_t work = width * (1 + std::min(window, rule.rows()));
  parallel_chunks(vectors.shape()[0] * rule.block, row_chunk(work), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t place = begin; place < end; ++place) {
      const std::int64_t b = place / rule.block, t = place % rule.block, seen = rule.seen(t, before[place]);
      T* const to = result + place * window;
      std::fill_n(to, window - seen, T(0));
      const RowProducts<T> products(of_places + place * width, width);
      const T* const first = in + (b * rule.rows() + rule.end(t) - seen) * width;
      for (std::int64_t j = 0; j < seen; ++j) {
        const std::int64_t column = window - seen + j;
        to[column] = positions == nullptr ? products.with(first + j * width)
                                          : products.with(first + j * width, positions + column * width);
      }
      finish(place, seen);
    }
  });
}

}  // namespace engram::cpu
