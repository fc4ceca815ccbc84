#pragma once
/// tanh of sums of two rows, for many pairs of rows: with A = exp(2 a) and B = exp(2 b),
///   tanh(a + b) = 1 - 2 r,  r = 1 / (1 + A B),  and its derivative is 4 r (1 - r).
/// Exponentials are made once for a row, and a pair of elements costs a product and a reciprocal instead of a tanh:
/// every row meets many others. The absolute error of the tanh is below 2e-7 in f32.
///
/// Rows of exponentials have padded_width() elements: those behind the row are 1.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <type_traits>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "cpu/exponentials.hpp"
#include "cpu/row_lanes.hpp"

namespace engram::cpu {

/// Elements of a row of exponentials: whole pairs of vectors.
template <class T>
constexpr std::int64_t padded_width(std::int64_t width) {
  constexpr std::int64_t kStep = 2 * kLanes<T>;
  return (width + kStep - 1) / kStep * kStep;
}

/// Up to this a product of two exponentials and 1 more is a number, neither infinite nor lost. Rows with larger terms
/// are added first.
template <class T>
inline constexpr T kLargestTerm = std::is_same_v<T, float> ? T(20) : T(150);

namespace detail {
/// How many numbers are taken at a time, and the largest and the smallest of every lane, and 0.
template <class T>
struct ExponentSteps;
template <>
struct ExponentSteps<float> {
  static constexpr std::int64_t kNumbers = kLanes<float>;
  Floats highest{}, lowest{};

  /// to[i] = exp(2 from[i]) where that is moderate.
  void take(const float* from, float* to) {
    const Floats x = load_lanes<float>(from);
    highest = x > highest ? x : highest;
    lowest = x < lowest ? x : lowest;
    store_lanes<float>(exponential_of_moderate(x + x), to);
  }
  bool within(float limit) const {
    const Floats one = Floats{} + 1.0f;
    return sum_of_lanes<float>((highest > limit ? one : Floats{}) + (lowest < -limit ? one : Floats{})) == 0;
  }
};
template <>
struct ExponentSteps<double> {
  static constexpr std::int64_t kNumbers = kLanes<double>;
  double highest = 0, lowest = 0;

  void take(const double* from, double* to) {
    for (std::int64_t i = 0; i < kNumbers; ++i) {
      highest = from[i] > highest ? from[i] : highest;
      lowest = from[i] < lowest ? from[i] : lowest;
      to[i] = std::exp(2 * from[i]);  // f64 is for checks: exact before it is fast
    }
  }
  bool within(double limit) const { return highest <= limit && lowest >= -limit; }
};

/// to[i] = exp(2 from[i]), 1 behind the row, where all of them are between -limit and limit, else nothing of use;
/// returns whether they are. A NaN is, and stays one.
template <class T>
bool doubled_exponentials_within(T limit, const T* from, std::int64_t width, T* to, std::int64_t padded) {
  constexpr std::int64_t kStep = ExponentSteps<T>::kNumbers;
  ExponentSteps<T> steps;
  std::int64_t i = 0;
  for (; i + kStep <= width; i += kStep) steps.take(from + i, to + i);
  if (i < width) {
    std::array<T, kStep> rest{};
    std::copy(from + i, from + width, rest.begin());
    steps.take(rest.data(), to + i);
    i += kStep;
  }
  std::fill(to + i, to + padded, T(1));
  return steps.within(limit);
}
}  // namespace detail

/// to[i] = exp(2 (a[i] + b[i])), for rows with numbers of any size: their pair is `to` and a row of ones. What is so
/// large that a tanh is 1 or -1 becomes a number as good as it. b: null for zeros.
template <class T>
void doubled_exponentials_of_sum(const T* a, const T* b, std::int64_t width, T* to, std::int64_t padded) {
  constexpr T kMost = 2 * kLargestTerm<T>;
  for (std::int64_t i = 0; i < width; ++i) {
    const T sum = b == nullptr ? a[i] : a[i] + b[i];
    to[i] = sum > kMost ? kMost : sum < -kMost ? -kMost : sum;
  }
  detail::doubled_exponentials_within(kMost, to, width, to, padded);
}

/// to[i] = exp(2 from[i]); returns whether products of these with those of another such row are what they should be.
/// They are beside a row of ones in any case.
template <class T>
bool doubled_exponentials(const T* from, std::int64_t width, T* to, std::int64_t padded) {
  if (detail::doubled_exponentials_within(kLargestTerm<T>, from, width, to, padded)) return true;
  doubled_exponentials_of_sum<T>(from, nullptr, width, to, padded);
  return false;
}

/// r = 1 / (1 + a b) of the exponentials a and b: (1 - tanh) / 2.
inline Lanes<float> falling_half(const Lanes<float>& a, const Lanes<float>& b) {
#if defined(__AVX512F__)
  // A division takes as long as ten other operations. An estimate of 14 bits and one step of Newton's method give all.
  const __m512 one = _mm512_set1_ps(1.0f);
  const __m512 sum = _mm512_fmadd_ps(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b), one);
  const __m512 estimate = _mm512_rcp14_ps(sum);
  const __m512 missing = _mm512_fnmadd_ps(sum, estimate, one);
  return reinterpret_cast<Lanes<float>>(_mm512_fmadd_ps(estimate, missing, estimate));
#else
  return 1.0f / (a * b + 1.0f);
#endif
}
inline Lanes<double> falling_half(const Lanes<double>& a, const Lanes<double>& b) { return 1.0 / (a * b + 1.0); }

/// The sum over i of vector[i] tanh(a_i + b_i) / 2, from their exponentials. vector: 0 behind the row.
template <class T>
T half_tanh_score(const T* a, const T* b, const T* vector, std::int64_t padded) {
  Lanes<T> first{}, second{};
  for (std::int64_t i = 0; i < padded; i += 2 * kLanes<T>) {
    const std::int64_t k = i + kLanes<T>;
    first += load_lanes<T>(vector + i) * (T(0.5) - falling_half(load_lanes<T>(a + i), load_lanes<T>(b + i)));
    second += load_lanes<T>(vector + k) * (T(0.5) - falling_half(load_lanes<T>(a + k), load_lanes<T>(b + k)));
  }
  return sum_of_lanes<T>(first + second);
}

/// For `count` rows of exponentials a, one after the other, that meet the row b with gradients dscores of their scores:
/// with s = dscores[j] times a quarter of the derivative of tanh, da[j] += s for each of them, db += the sum of s, and
/// dvector += the sum of dscores[j] tanh / 2. What is left for the caller are factors.
template <class T>
void add_tanh_gradients(const T* a, const T* b, const T* dscores, std::int64_t count, T* da, T* db, T* dvector,
                        std::int64_t padded) {
  for (std::int64_t i = 0; i < padded; i += kLanes<T>) {
    const Lanes<T> of_b = load_lanes<T>(b + i);
    Lanes<T> slopes = load_lanes<T>(db + i), halves = load_lanes<T>(dvector + i);
    for (std::int64_t j = 0; j < count; ++j) {
      const std::int64_t at = j * padded + i;
      const Lanes<T> falling = falling_half(load_lanes<T>(a + at), of_b);
      const Lanes<T> slope = dscores[j] * (falling - falling * falling);
      store_lanes<T>(load_lanes<T>(da + at) + slope, da + at);
      slopes += slope;
      halves += dscores[j] * (T(0.5) - falling);
    }
    store_lanes<T>(slopes, db + i);
    store_lanes<T>(halves, dvector + i);
  }
}

}  // namespace engram::cpu
