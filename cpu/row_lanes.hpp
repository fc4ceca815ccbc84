#pragma once
/// Rows in whole vectors, for rows that are short and read often: what is left behind the last whole vector of a row is
/// handled as a vector too, one that begins before it. Loads and stores need no alignment but the elements'.

#include <cstdint>
#include <cstring>

#include "cpu/part_vectors.hpp"

namespace engram::cpu {

template <class T>
using Lanes = typename detail::ProductLanes<T>::Vector;
template <class T>
inline constexpr std::int64_t kLanes = kVectorLanes<T>;

template <class T>
Lanes<T> load_lanes(const T* from) {
  Lanes<T> x;
  std::memcpy(static_cast<void*>(&x), from, sizeof x);
  return x;
}
template <class T>
void store_lanes(const Lanes<T>& x, T* to) {
  std::memcpy(to, static_cast<const void*>(&x), sizeof x);
}

/// Products of one row with others of its length, always summed in the same order.
template <class T>
class RowProducts {
 public:
  RowProducts(const T* row, std::int64_t width) : row_(row), width_(width), whole_(width / kLanes<T> * kLanes<T>) {
    if (whole_ == 0 || whole_ == width) return;
    // Of the vector that ends with the row, zeros in place of what the whole vectors before have taken.
    T last[kLanes<T>] = {};
    std::memcpy(last + kLanes<T> - (width - whole_), row + whole_,
                sizeof(T) * static_cast<std::size_t>(width - whole_));
    last_ = load_lanes<T>(last);
  }

  T with(const T* other) const {
    return sum([other](std::int64_t i) { return load_lanes<T>(other + i); },
               [other](std::int64_t i) { return other[i]; });
  }
  /// With the sum of two rows.
  T with(const T* a, const T* b) const {
    return sum([a, b](std::int64_t i) { return load_lanes<T>(a + i) + load_lanes<T>(b + i); },
               [a, b](std::int64_t i) { return a[i] + b[i]; });
  }

 private:
  template <class Vector, class Element>
  T sum(Vector&& vector, Element&& element) const {
    if (whole_ == 0) {
      T total = 0;
      for (std::int64_t i = 0; i < width_; ++i) total += row_[i] * element(i);
      return total;
    }
    Lanes<T> first{}, second{};
    std::int64_t i = 0;
    for (; i + 2 * kLanes<T> <= whole_; i += 2 * kLanes<T>) {
      first += load_lanes<T>(row_ + i) * vector(i);
      second += load_lanes<T>(row_ + i + kLanes<T>) * vector(i + kLanes<T>);
    }
    if (i < whole_) first += load_lanes<T>(row_ + i) * vector(i);
    if (whole_ < width_) second += last_ * vector(width_ - kLanes<T>);
    return sum_of_lanes<T>(first + second);
  }

  const T* row_;
  std::int64_t width_, whole_;
  Lanes<T> last_{};
};

namespace detail {
template <int kVectors, class T>
void sum_row_block(const T* const* rows, const T* weights, std::int64_t count, std::int64_t begin, T* to) {
  Lanes<T> sums[kVectors] = {};
  for (std::int64_t j = 0; j < count; ++j) {
    const Lanes<T> weight = Lanes<T>{} + weights[j];
    for (int v = 0; v < kVectors; ++v) sums[v] += weight * load_lanes<T>(rows[j] + begin + v * kLanes<T>);
  }
  for (int v = 0; v < kVectors; ++v) store_lanes<T>(sums[v], to + begin + v * kLanes<T>);
}
}  // namespace detail

/// to[0, width) = the sum over j < count of weights[j] rows[j][0, width), in order of j; `to` is none of the rows.
template <class T>
void sum_weighted_rows(const T* const* rows, const T* weights, std::int64_t count, T* to, std::int64_t width) {
  constexpr int kVectors = 4;
  std::int64_t i = 0;
  for (; i + kVectors * kLanes<T> <= width; i += kVectors * kLanes<T>)
    detail::sum_row_block<kVectors>(rows, weights, count, i, to);
  for (; i + kLanes<T> <= width; i += kLanes<T>) detail::sum_row_block<1>(rows, weights, count, i, to);
  if (i == width) return;
  if (width >= kLanes<T>) {  // some numbers are computed twice, and are the same
    detail::sum_row_block<1>(rows, weights, count, width - kLanes<T>, to);
    return;
  }
  for (; i < width; ++i) {
    T sum = 0;
    for (std::int64_t j = 0; j < count; ++j) sum += weights[j] * rows[j][i];
    to[i] = sum;
  }
}

}  // namespace engram::cpu
