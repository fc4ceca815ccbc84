#pragma once
/// One number everywhere.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cpu/parallel.hpp"
#include "cpu/vector_bytes.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace engram::cpu {

/// From so many bytes on no cache keeps what is filled until it is read.
inline constexpr std::int64_t kPastCaches = std::int64_t{16} << 20;

namespace detail {

/// `out` is aligned to a vector, and `bytes` are whole vectors. Past the caches, where the processor can: a line that
/// is only written need not be read first.
inline void stream_vectors(std::byte* out, std::int64_t bytes, const std::byte* vector) {
#if defined(__AVX512F__)
  const __m512i lanes = _mm512_loadu_si512(vector);
  for (std::int64_t i = 0; i < bytes; i += kVectorBytes)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(out + i), lanes);
#elif defined(__AVX2__)
  const __m256i lanes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(vector));
  for (std::int64_t i = 0; i < bytes; i += kVectorBytes)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(out + i), lanes);
#elif defined(__SSE2__)
  const __m128i lanes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(vector));
  for (std::int64_t i = 0; i < bytes; i += kVectorBytes) _mm_stream_si128(reinterpret_cast<__m128i*>(out + i), lanes);
#else
  for (std::int64_t i = 0; i < bytes; i += kVectorBytes) std::copy_n(vector, kVectorBytes, out + i);
#endif
#if defined(__SSE2__)
  _mm_sfence();  // before another thread is told that they are there
#endif
}

}  // namespace detail

/// out[i] = value for i < count, by all threads. `out` is a tensor's beginning, or aligned like one.
template <class T>
void fill_elements(T* out, std::int64_t count, T value) {
  const bool streams = count * static_cast<std::int64_t>(sizeof(T)) >= kPastCaches &&
                       reinterpret_cast<std::uintptr_t>(out) % kVectorBytes == 0;
  parallel_chunks(count, kElementChunk, [&](std::int64_t begin, std::int64_t end) {
    constexpr std::int64_t kLanes = kVectorBytes / static_cast<std::int64_t>(sizeof(T));
    std::int64_t first = begin;
    if (streams) {
      T vector[kLanes];
      std::fill_n(vector, kLanes, value);
      first += (end - begin) / kLanes * kLanes;
      detail::stream_vectors(reinterpret_cast<std::byte*>(out + begin),
                             (first - begin) * static_cast<std::int64_t>(sizeof(T)),
                             reinterpret_cast<const std::byte*>(vector));
    }
    std::fill(out + first, out + end, value);
  });
}

}  // namespace engram::cpu
