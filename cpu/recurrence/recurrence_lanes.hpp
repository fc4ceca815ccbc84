#pragma once
/// Neighbouring units of a recurrent cell at a time, for the formulas of core/rules/recurrent_cell.hpp: whole vectors
/// of f32, single numbers of f64.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/rules/recurrent_cell.hpp"
#include "cpu/exponentials.hpp"

namespace engram::cpu {

template <class T>
struct CellLanes {
  using Vector = T;
  using Math = NumberMath;
};

/// Absolute errors below 2e-7, which tests/ops/recurrence_cells.cpp measures.
struct VectorMath {
  using Vector = detail::Floats;
  static Vector sigmoid(const Vector& x) { return 1.0f / (1.0f + detail::exponential(-x)); }
  static Vector tanh(const Vector& x) {
    const Vector size = x < 0.0f ? -x : x;
    const Vector far = 1.0f - 2.0f / (1.0f + detail::exponential(size + size));
    // The series, where the quotient has lost digits.
    const Vector square = x * x;
    Vector near = Vector{} - 1382.0f / 155925.0f;
    near = near * square + 62.0f / 2835.0f;
    near = near * square - 17.0f / 315.0f;
    near = near * square + 2.0f / 15.0f;
    near = near * square - 1.0f / 3.0f;
    near = near * square * x + x;
    return size < 0.35f ? near : x < 0.0f ? -far : far;
  }
};
template <>
struct CellLanes<float> {
  using Vector = VectorMath::Vector;
  using Math = VectorMath;
};

/// `count` numbers, at least one, from any address; beyond them zeros. (Vectors of one lane are named in the
/// conditions, as GCC 14 else warns of what is copied beside them.)
template <class T>
typename CellLanes<T>::Vector load_lanes(const T* from, std::int64_t count) {
  using Vector = typename CellLanes<T>::Vector;
  constexpr std::int64_t kLanes = sizeof(Vector) / sizeof(T);
  Vector x;
  if (kLanes == 1 || count == kLanes) {
    std::memcpy(static_cast<void*>(&x), from, sizeof x);
  } else {
    alignas(64) T buffer[kLanes] = {};
    std::copy_n(from, count, buffer);
    std::memcpy(static_cast<void*>(&x), buffer, sizeof x);
  }
  return x;
}
template <class T>
void store_lanes(T* to, std::int64_t count, const typename CellLanes<T>::Vector& x) {
  constexpr std::int64_t kLanes = sizeof x / sizeof(T);
  if (kLanes == 1 || count == kLanes) {
    std::memcpy(to, static_cast<const void*>(&x), sizeof x);
  } else {
    alignas(64) T buffer[kLanes];
    std::memcpy(buffer, static_cast<const void*>(&x), sizeof x);
    std::copy_n(buffer, count, to);
  }
}

}  // namespace engram::cpu
