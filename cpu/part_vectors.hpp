#pragma once
/// Vectors of the processor of which only the first numbers count: what lies behind them in memory is neither read nor
/// written.

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cpu/vector_bytes.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace engram::cpu {

namespace detail {

/// GCC takes a size that is a template's parameter from a typedef only.
template <class T, int kBytes = kVectorBytes>
struct ProductLanes;
template <int kBytes>
struct ProductLanes<float, kBytes> {
  typedef float Vector __attribute__((vector_size(kBytes), may_alias));
};
template <int kBytes>
struct ProductLanes<double, kBytes> {
  typedef double Vector __attribute__((vector_size(kBytes), may_alias));
};

}  // namespace detail

template <class T>
inline constexpr std::int64_t kVectorLanes = kVectorBytes / static_cast<std::int64_t>(sizeof(T));

/// Rounded up to whole vectors.
template <class T>
constexpr std::int64_t whole_vectors(std::int64_t count) {
  return (count + kVectorLanes<T> - 1) / kVectorLanes<T> * kVectorLanes<T>;
}

template <class T>
class PartVector {
 public:
  using Vector = typename detail::ProductLanes<T>::Vector;

  /// Of `count` numbers, 0 to kVectorLanes<T>.
  explicit PartVector(std::int64_t count) {
#if defined(__AVX512F__)
    mask_ = static_cast<Mask>((1u << count) - 1);
#elif defined(__AVX2__)
    alignas(kVectorBytes) Word words[kVectorLanes<T>];
    for (std::int64_t i = 0; i < kVectorLanes<T>; ++i) words[i] = i < count ? -1 : 0;
    std::memcpy(&mask_, words, sizeof mask_);
#else
    mask_ = count;
#endif
  }

  /// Zeros behind the numbers.
  Vector load(const T* from) const {
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4)
      return reinterpret_cast<Vector>(_mm512_maskz_loadu_ps(mask_, from));
    else
      return reinterpret_cast<Vector>(_mm512_maskz_loadu_pd(mask_, from));
#elif defined(__AVX2__)
    if constexpr (sizeof(T) == 4)
      return reinterpret_cast<Vector>(_mm256_maskload_ps(from, mask_));
    else
      return reinterpret_cast<Vector>(_mm256_maskload_pd(from, mask_));
#else
    Vector numbers = {};
    for (std::int64_t i = 0; i < mask_; ++i) numbers[i] = from[i];
    return numbers;
#endif
  }
  /// Those of `behind` behind the numbers.
  Vector load(const T* from, const Vector& behind) const {
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4)
      return reinterpret_cast<Vector>(_mm512_mask_loadu_ps(reinterpret_cast<__m512>(behind), mask_, from));
    else
      return reinterpret_cast<Vector>(_mm512_mask_loadu_pd(reinterpret_cast<__m512d>(behind), mask_, from));
#elif defined(__AVX2__)
    return joined(load(from), behind);
#else
    Vector numbers = behind;
    for (std::int64_t i = 0; i < mask_; ++i) numbers[i] = from[i];
    return numbers;
#endif
  }
  /// Zeros behind the numbers.
  Vector only(const Vector& numbers) const {
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4)
      return reinterpret_cast<Vector>(_mm512_maskz_mov_ps(mask_, reinterpret_cast<__m512>(numbers)));
    else
      return reinterpret_cast<Vector>(_mm512_maskz_mov_pd(mask_, reinterpret_cast<__m512d>(numbers)));
#elif defined(__AVX2__)
    return joined(numbers, Vector{});
#else
    Vector first = {};
    for (std::int64_t i = 0; i < mask_; ++i) first[i] = numbers[i];
    return first;
#endif
  }
  void store(const Vector& numbers, T* to) const {
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4)
      _mm512_mask_storeu_ps(to, mask_, reinterpret_cast<__m512>(numbers));
    else
      _mm512_mask_storeu_pd(to, mask_, reinterpret_cast<__m512d>(numbers));
#elif defined(__AVX2__)
    if constexpr (sizeof(T) == 4)
      _mm256_maskstore_ps(to, mask_, reinterpret_cast<__m256>(numbers));
    else
      _mm256_maskstore_pd(to, mask_, reinterpret_cast<__m256d>(numbers));
#else
    for (std::int64_t i = 0; i < mask_; ++i) to[i] = numbers[i];
#endif
  }

 private:
#if defined(__AVX512F__)
  using Mask = std::conditional_t<sizeof(T) == 4, __mmask16, __mmask8>;
  Mask mask_;
#elif defined(__AVX2__)
  using Word = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  Vector joined(const Vector& numbers, const Vector& behind) const {
    const auto mask = reinterpret_cast<__m256>(mask_);
    return reinterpret_cast<Vector>(
        _mm256_blendv_ps(reinterpret_cast<__m256>(behind), reinterpret_cast<__m256>(numbers), mask));
  }
  __m256i mask_;
#else
  std::int64_t mask_;  ///< numbers
#endif
};

namespace detail {

/// All numbers of a vector, used as a PartVector is.
template <class T, int kBytes>
struct AllOfVector {
  using Vector = typename ProductLanes<T, kBytes>::Vector;

  Vector load(const T* from) const {
    Vector numbers;
    std::memcpy(&numbers, from, sizeof(Vector));
    return numbers;
  }
  Vector load(const T* from, const Vector&) const { return load(from); }
  const Vector& only(const Vector& numbers) const { return numbers; }
  void store(const Vector& numbers, T* to) const { std::memcpy(to, &numbers, sizeof(Vector)); }
};

}  // namespace detail

template <class T>
using WholeVector = detail::AllOfVector<T, kVectorBytes>;

/// A vector of half as many numbers.
template <class T>
using HalfVector = detail::AllOfVector<T, kVectorBytes / 2>;

/// Whether half a vector may take half the time: processors that work on 64 bytes in two halves (Zen 4).
inline constexpr bool kHalvesPay = kVectorBytes == 64;

/// Calls use(first, vector) for the vectors of a row of `count` numbers: a WholeVector as long as there is one, then a
/// PartVector.
template <class T, class Use>
void each_vector(std::int64_t count, Use use) {
  constexpr std::int64_t kLanes = kVectorLanes<T>;
  std::int64_t first = 0;
  for (; first + kLanes <= count; first += kLanes) use(first, WholeVector<T>());
  if (first < count) use(first, PartVector<T>(count - first));
}

namespace detail {

/// One number of all: halves are joined until it is left.
template <class T, class Vector, class Join>
T reduce_lanes(const Vector& lanes, Join join) {
  constexpr int kHalf = sizeof(Vector) / sizeof(T) / 2;
  if constexpr (kHalf == 0) {
    return lanes[0];
  } else {
    typedef T Half __attribute__((vector_size(sizeof(Vector) / 2)));
    Half low, high;
    std::memcpy(&low, &lanes, sizeof(Half));
    std::memcpy(&high, reinterpret_cast<const char*>(&lanes) + sizeof(Half), sizeof(Half));
    return reduce_lanes<T>(join(low, high), join);
  }
}

}  // namespace detail

template <class T>
T sum_of_lanes(const typename detail::ProductLanes<T>::Vector& lanes) {
  return detail::reduce_lanes<T>(lanes, [](const auto& a, const auto& b) { return a + b; });
}
/// Of numbers, not NaN.
template <class T>
T largest_lane(const typename detail::ProductLanes<T>::Vector& lanes) {
  return detail::reduce_lanes<T>(lanes, [](const auto& a, const auto& b) { return a > b ? a : b; });
}

}  // namespace engram::cpu
