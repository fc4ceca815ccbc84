#pragma once
/// Sums over the rows of a matrix, column by column, in two launches: chunks of rows into a workspace, then the chunks
/// in order. The cut depends on the number of rows only.

#include <algorithm>

#include "core/kernel.hpp"
#include "cuda/vector_access.cuh"

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

inline constexpr int kSumColumns = 32;  // threads of a block side by side, each with kWidth columns
inline constexpr int kSumRows = 8;      // that a block reads at once

/// Columns of a thread where packs are allowed: of bf16 as many as one access has, of others one, 128 bytes for a warp.
template <class T>
inline constexpr int kSumWidth = sizeof(T) == 2 ? kPackWidth<T> : 1;

/// In shared memory a thread's j-th column is j times so many numbers behind its first, which lie side by side. So 32
/// threads write to 32 banks, and 32 columns that are neighbours in the matrix are read from 32 as well.
template <int kWidth>
inline constexpr int kSumStride = kSumColumns + kSumColumns / kWidth;

/// partial[(chunk kSums + s) n + column] = sum over the chunk's rows of the s-th number of a row and column.
/// Terms: kSums, and `void add<kWidth>(row, column, T (&sums)[kSums][kWidth])` for kWidth columns from `column` on.
template <int kWidth, class T, class Terms>
__global__ void __launch_bounds__(kSumColumns* kSumRows)
    partial_column_sums(std::int64_t rows, std::int64_t n, std::int64_t chunk, Terms terms, T* partial) {
  static_assert(kWidth <= kSumRows, "a thread for every column");
  constexpr int kSums = Terms::kSums;
  __shared__ T sums_of_rows[kSums][kSumRows][kWidth * kSumStride<kWidth>];
  const int lane = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kSumColumns * kWidth;
  const std::int64_t column = first + lane * kWidth;
  const std::int64_t begin = blockIdx.y * chunk;
  const std::int64_t end = begin + chunk < rows ? begin + chunk : rows;
  T sums[kSums][kWidth] = {};
  if (column < n)
    for (std::int64_t row = begin + threadIdx.y; row < end; row += kSumRows)
      terms.template add<kWidth>(row, column, sums);
  for (int s = 0; s < kSums; ++s)
    for (int j = 0; j < kWidth; ++j) sums_of_rows[s][y][j * kSumStride<kWidth> + lane] = sums[s][j];
  __syncthreads();
  // Neighbouring threads write neighbouring columns.
  const int own = y * kSumColumns + lane, place = own % kWidth * kSumStride<kWidth> + own / kWidth;
  if (own >= kSumColumns * kWidth || first + own >= n) return;
  for (int s = 0; s < kSums; ++s) {
    T total = sums_of_rows[s][0][place];
    for (int r = 1; r < kSumRows; ++r) total += sums_of_rows[s][r][place];
    partial[(static_cast<std::int64_t>(blockIdx.y) * kSums + s) * n + first + own] = total;
  }
}

/// Where the sums of a column go, one or two; null: nowhere. No array: one whose index only the card knows would be
/// copied to the stack.
template <class T>
struct ColumnResults {
  T *first, *second;
  Write first_write, second_write;
};

/// The results' elements (set or add) sum over c < chunks of partial[(c sums + s) n + column], in order of c; s is the
/// block's row.
template <class T>
__global__ void __launch_bounds__(256) finish_column_sums(const T* partial, std::int64_t chunks, std::int64_t n,
                                                          std::int64_t sums, ColumnResults<T> results) {
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * 256 + threadIdx.x;
  const bool is_second = blockIdx.y != 0;
  T* const result = is_second ? results.second : results.first;
  if (column >= n || result == nullptr) return;
  const T* const from = partial + blockIdx.y * n + column;
  T sum = 0;
  for (std::int64_t c = 0; c < chunks; ++c) sum += from[c * sums * n];
  T& to = result[column];
  to = (is_second ? results.second_write : results.first_write) == Write::add ? to + sum : sum;
}

/// The same in one launch for all results.
template <class T, int kSums>
void add_column_sums(Step& step, const T* partial, std::int64_t chunks, std::int64_t n,
                     const TargetElements<T> (&results)[kSums]) {
  static_assert(kSums == 1 || kSums == 2);
  const TargetElements<T>&first = results[0], &second = results[kSums - 1];
  const ColumnResults<T> to{first.data, second.data, first.write, second.write};
  launch(step, {.blocks = {(n + 255) / 256, kSums}, .threads = 256}, finish_column_sums<T>, partial, chunks, n, kSums,
         to);
}

/// results[s].data[column] (set or add) the sum over all rows. kWidth: columns of a thread, which divide n.
template <int kWidth, class T, class Terms>
void column_sums(Step& step, std::int64_t rows, std::int64_t n, const Terms& terms,
                 const TargetElements<T> (&results)[Terms::kSums]) {
  constexpr std::int64_t kColumns = kSumColumns * kWidth;
  const RowChunks chunks(rows);
  const Workspace memory = step.workspace(static_cast<std::size_t>(chunks.count * Terms::kSums * n) * sizeof(T));
  T* const partial = memory.data<T>();
  launch(step, {.blocks = {(n + kColumns - 1) / kColumns, chunks.count}, .threads = {kSumColumns, kSumRows}},
         partial_column_sums<kWidth, T, Terms>, rows, n, chunks.chunk, terms, partial);
  add_column_sums<T>(step, partial, chunks.count, n, results);
}

/// Column sums for terms that read matrices of X in packs, where `in_packs` allows them.
template <class X, class T, class Terms>
void column_sums(Step& step, bool in_packs, std::int64_t rows, std::int64_t n, const Terms& terms,
                 const TargetElements<T> (&results)[Terms::kSums]) {
  if constexpr (kSumWidth < X >> 1)
    if (in_packs && n % kSumWidth<X> == 0) return column_sums<kSumWidth<X>, T>(step, rows, n, terms, results);
  column_sums<1, T>(step, rows, n, terms, results);
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
