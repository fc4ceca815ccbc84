#pragma once
/// Rows whose distance is a multiple of a large power of two fall into few sets of a cache and push each other out.
/// oneDNN reads a matrix along its columns when it is b as it lies or a transposed; with colliding rows such products
/// run at 40 to 70% of their rate. Copies whose rows lie a little further apart cost a few percent.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "cpu/gemm.hpp"

namespace engram::cpu {

/// Whether a matrix that a product reads along its columns should be copied. Measured with oneDNN 2.6 on a Zen 3: 42 to
/// 66 GFLOP/s a core at distances of 512, 1024, 1536 and 2048 floats, 78 at 768, 83 to 91 at others. On a Xeon with
/// AVX-512 the same distances cost a sixth at most (116 beside 137 at 1536 and 2064), mostly less than a twentieth.
template <class T>
bool rows_collide([[maybe_unused]] std::int64_t stride) {
#if defined(__AVX512F__)
  return false;
#else
  return std::is_same_v<T, float> && detail::kHaveOneDnn && stride >= 512 && stride % 256 == 0;
#endif
}

/// The distance of rows in a copy: whole vectors, and no multiple of a large power of two.
constexpr std::int64_t apart(std::int64_t row_length) { return (row_length + 15) / 16 * 16 + 24; }

/// Copies rows of `length` elements to a distance of `to_stride`.
template <class T>
void copy_rows(const T* from, std::int64_t from_stride, std::int64_t rows, std::int64_t length, T* to,
               std::int64_t to_stride) {
  for (std::int64_t row = 0; row < rows; ++row) std::copy_n(from + row * from_stride, length, to + row * to_stride);
}

}  // namespace engram::cpu
