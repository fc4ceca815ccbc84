#pragma once
/// Exponentials of one row in place, the innermost loop of attention. Every element goes through whole vectors: an
/// Eigen expression works element by element up to the next aligned address and after the last whole vector, which for
/// short rows costs more than all the rest.

#include <Eigen/Core>
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "cpu/part_vectors.hpp"

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

namespace detail {

inline Floats exponential_of_vector(const Floats& x) { return exponential(x); }
inline ProductLanes<double>::Vector exponential_of_vector(const ProductLanes<double>::Vector& x) {
  Eigen::Array<double, static_cast<int>(kVectorLanes<double>), 1> numbers;
  std::memcpy(numbers.data(), &x, sizeof x);
  numbers = numbers.exp();
  ProductLanes<double>::Vector powers;
  std::memcpy(&powers, numbers.data(), sizeof powers);
  return powers;
}

}  // namespace detail

/// row[i] = exp(row[i] - shift); returns the sum.
template <class T>
T exponentials(T* row, std::int64_t count, T shift) {
  using Vector = typename detail::ProductLanes<T>::Vector;
  const Vector shifts = Vector{} + shift;
  Vector sum = {};
  each_vector<T>(count, [&](std::int64_t i, const auto& part) {
    const Vector powers = part.only(detail::exponential_of_vector(part.load(row + i, shifts) - shifts));
    part.store(powers, row + i);
    sum += powers;
  });
  return sum_of_lanes<T>(sum);
}

/// The largest number of a row, at least `least`.
template <class T>
T largest_of(const T* row, std::int64_t count, T least) {
  using Vector = typename detail::ProductLanes<T>::Vector;
  Vector largest = Vector{} + least;
  each_vector<T>(count, [&](std::int64_t i, const auto& part) {
    const Vector numbers = part.load(row + i, largest);
    largest = numbers > largest ? numbers : largest;
  });
  return largest_lane<T>(largest);
}

}  // namespace engram::cpu
