#pragma once
/// Sums whose order of additions depends on the counts only: over all elements in double, and over the rows of a
/// matrix.

#include <algorithm>
#include <cstdint>

#include "core/step.hpp"
#include "cpu/parallel.hpp"
#include "cpu/vec.hpp"

namespace engram::cpu {

inline constexpr int kSumLanes = 16;

/// The sum of term(i), a double, for begin <= i < end: in sixteen lanes, so that it becomes vector instructions.
template <class Term>
double sum_in_lanes(std::int64_t begin, std::int64_t end, Term&& term) {
  double lanes[kSumLanes] = {};
  std::int64_t i = begin;
  for (; i + kSumLanes <= end; i += kSumLanes)
    for (int lane = 0; lane < kSumLanes; ++lane) lanes[lane] += term(i + lane);
  for (int lane = 0; i < end; ++i, ++lane) lanes[lane] += term(i);
  for (int width = kSumLanes / 2; width > 0; width /= 2)
    for (int lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  return lanes[0];
}

/// How the rows of a matrix are cut for sums over them: at most 32 chunks, each of at least 32 rows.
struct RowSumChunks {
  std::int64_t rows, chunk, count;

  explicit constexpr RowSumChunks(std::int64_t row_count)
      : rows(row_count),
        chunk(std::max<std::int64_t>(32, (row_count + 31) / 32)),
        count((row_count + chunk - 1) / chunk) {}
};

/// result[i] (set or add) sum over c < chunks of partial[c * stride + i], in order of c; i < n.
template <class T>
void add_partial_rows(const T* partial, std::int64_t chunks, std::int64_t stride, std::int64_t n, T* result,
                      Write write) {
  constexpr std::int64_t kColumns = 512;
  parallel_chunks(n, kColumns, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t columns = end - begin;
    Eigen::Array<T, Eigen::Dynamic, 1, 0, kColumns, 1> sum = Eigen::Array<T, Eigen::Dynamic, 1>::Zero(columns);
    for (std::int64_t c = 0; c < chunks; ++c) sum += vec(partial + c * stride + begin, columns);
    store(vec(result + begin, columns), sum, write);
  });
}

}  // namespace engram::cpu
