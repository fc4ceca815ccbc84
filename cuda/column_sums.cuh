#pragma once
/// Sums over the rows of a matrix, column by column, in two launches: chunks of rows into a workspace, then the chunks
/// in order. The cut depends on the number of rows only.

#include <algorithm>

#include "core/kernel.hpp"
#include "cuda/launch.hpp"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// At most 64 chunks, each of at least 32 rows.
struct RowChunks {
  std::int64_t rows, chunk, count;

  explicit RowChunks(std::int64_t row_count)
      : rows(row_count),
        chunk(std::max<std::int64_t>(32, (row_count + 63) / 64)),
        count((row_count + chunk - 1) / chunk) {}
};

inline constexpr int kSumColumns = 32;  // of a block: one access of a warp
inline constexpr int kSumRows = 8;      // that a block reads at once

/// partial[(chunk kSums + s) n + column] = sum of the s-th number of terms(row, column) over the chunk's rows.
/// Terms: kSums, and `void operator()(row, column, T (&sums)[kSums])`, which adds.
template <class T, class Terms>
__global__ void __launch_bounds__(kSumColumns* kSumRows)
    partial_column_sums(std::int64_t rows, std::int64_t n, std::int64_t chunk, Terms terms, T* partial) {
  constexpr int kSums = Terms::kSums;
  __shared__ T sums_of_rows[kSums][kSumRows][kSumColumns];
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kSumColumns + threadIdx.x;
  const std::int64_t begin = blockIdx.y * chunk;
  const std::int64_t end = begin + chunk < rows ? begin + chunk : rows;
  T sums[kSums] = {};
  if (column < n)
    for (std::int64_t row = begin + threadIdx.y; row < end; row += kSumRows) terms(row, column, sums);
  for (int s = 0; s < kSums; ++s) sums_of_rows[s][threadIdx.y][threadIdx.x] = sums[s];
  __syncthreads();
  if (threadIdx.y != 0 || column >= n) return;
  for (int s = 0; s < kSums; ++s) {
    T total = sums_of_rows[s][0][threadIdx.x];
    for (int r = 1; r < kSumRows; ++r) total += sums_of_rows[s][r][threadIdx.x];
    partial[(static_cast<std::int64_t>(blockIdx.y) * kSums + s) * n + column] = total;
  }
}

/// result[column] (set or add) sum over c < chunks of partial[c stride + column], in order of c.
template <class T>
__global__ void __launch_bounds__(256) finish_column_sums(const T* partial, std::int64_t chunks, std::int64_t stride,
                                                          std::int64_t n, T* result, Write write) {
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (column >= n) return;
  T sum = 0;
  for (std::int64_t c = 0; c < chunks; ++c) sum += partial[c * stride + column];
  result[column] = write == Write::add ? result[column] + sum : sum;
}

/// results[s][column] (set or add) the sum over all rows; a null result is not wanted.
template <class T, class Terms>
void column_sums(Step& step, std::int64_t rows, std::int64_t n, const Terms& terms, T* const (&results)[Terms::kSums],
                 const Write (&writes)[Terms::kSums]) {
  const RowChunks chunks(rows);
  const std::int64_t stride = Terms::kSums * n;
  const Workspace memory = step.workspace(static_cast<std::size_t>(chunks.count * stride) * sizeof(T));
  T* partial = memory.data<T>();
  launch(step, {.blocks = {(n + kSumColumns - 1) / kSumColumns, chunks.count}, .threads = {kSumColumns, kSumRows}},
         partial_column_sums<T, Terms>, rows, n, chunks.chunk, terms, partial);
  for (int s = 0; s < Terms::kSums; ++s)
    if (results[s] != nullptr)
      launch(step, {.blocks = (n + 255) / 256, .threads = 256}, finish_column_sums<T>, partial + s * n, chunks.count,
             stride, n, results[s], writes[s]);
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
