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

template <class T>
struct ProductLanes;
template <>
struct ProductLanes<float> {
  using Vector = float __attribute__((vector_size(kVectorBytes), may_alias));
};
template <>
struct ProductLanes<double> {
  using Vector = double __attribute__((vector_size(kVectorBytes), may_alias));
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
  __m256i mask_;
#else
  std::int64_t mask_;  ///< numbers
#endif
};

}  // namespace engram::cpu
