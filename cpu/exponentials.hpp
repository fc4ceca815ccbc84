#pragma once
/// Exponentials of one row in place, the innermost loop of attention. Every element goes through whole vectors: an
/// Eigen expression works element by element up to the next aligned address and after the last whole vector, which for
/// short rows costs more than all the rest.

#include <Eigen/Core>
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "cpu/vector_bytes.hpp"

namespace engram::cpu {

namespace detail {

using Floats = float __attribute__((vector_size(kVectorBytes), may_alias));
using Words = std::uint32_t __attribute__((vector_size(kVectorBytes), may_alias));

/// exp by 2^n times a polynomial on [-ln 2 / 2, ln 2 / 2], relative error below 1e-7, for -87 <= x <= 88; NaN stays
/// NaN. Beyond these any number: exponents wrap around.
inline Floats exponential_of_moderate(Floats x) {
  // Adding 1.5 * 2^23 leaves the nearest integer in the low bits.
  const Floats rounder = Floats{} + 12582912.0f;
  const Floats rounded = x * 1.44269504f + rounder;
  const Floats n = rounded - rounder;
  // ln 2 in two parts, so that r loses nothing.
  const Floats r = x - n * 0.693359375f - n * -2.12194440e-4f;
  // (exp(r) - 1 - r) / r^2, fitted for the least largest relative error of exp(r): 3e-9 before rounding.
  Floats p = Floats{} + 1.38144672e-3f;
  p = p * r + 8.36878084e-3f;
  p = p * r + 4.16683927e-2f;
  p = p * r + 1.66665196e-1f;
  p = p * r + 4.9999994e-1f;
  p = p * (r * r) + r + 1.0f;
  const Words exponent = (reinterpret_cast<const Words&>(rounded) << 23) + (127u << 23);
  return p * reinterpret_cast<const Floats&>(exponent);
}

/// The exponential of any x: 0 where the result is below the smallest normal number, infinity for x above 88.37.
inline Floats exponential(Floats x) {
  const Floats least = Floats{} - 88.0f, most = Floats{} + 88.8f;
  x = x < least ? least : x;
  return exponential_of_moderate(x > most ? most : x);
}

using Doubles = Eigen::Array<double, 8, 1>;
inline Doubles exponential(const Doubles& x) { return x.exp(); }

template <class T>
struct ExponentialLanes;
template <>
struct ExponentialLanes<float> {
  using Vector = Floats;
};
template <>
struct ExponentialLanes<double> {
  using Vector = Doubles;
};

}  // namespace detail

/// row[i] = exp(row[i] - shift); returns the sum.
template <class T>
T exponentials(T* row, std::int64_t count, T shift) {
  using Vector = typename detail::ExponentialLanes<T>::Vector;
  constexpr std::int64_t kLanes = sizeof(Vector) / sizeof(T);
  // memcpy: rows are aligned to their elements only.
  const auto load = [](const T* from) {
    Vector x;
    std::memcpy(static_cast<void*>(&x), from, sizeof x);
    return x;
  };
  const auto store = [](const Vector& x, T* to) { std::memcpy(to, static_cast<const void*>(&x), sizeof x); };
  alignas(64) T buffer[kLanes], sums[kLanes] = {};
  Vector sum = load(sums);
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Vector x = detail::exponential(Vector(load(row + i) - shift));
    store(x, row + i);
    sum += x;
  }
  store(sum, sums);
  if (i < count) {
    std::fill(std::copy(row + i, row + count, buffer), buffer + kLanes, shift);
    store(detail::exponential(Vector(load(buffer) - shift)), buffer);
    std::copy_n(buffer, count - i, row + i);
    for (std::int64_t lane = 0; lane < count - i; ++lane) sums[lane] += buffer[lane];
  }
  T total = 0;
  for (const T lane : sums) total += lane;
  return total;
}

}  // namespace engram::cpu
