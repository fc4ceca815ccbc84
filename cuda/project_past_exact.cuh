#pragma once
/// Projections of the past in f32 or f64 throughout, as evaluation and tests ask for.
///
/// A block of 256 threads makes 64 x 64 numbers of its result, a thread 4 x 4 of them. The inner axis comes in steps of
/// 16.

#include "cuda/past_heads.cuh"
#include "cuda/shared.cuh"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

struct ExactPast {
  static constexpr int kThreads = 256, kRows = 64, kColumns = 64, kInner = 16, kStride = kRows + 4;
  template <class T>
  static constexpr std::size_t kBytes = sizeof(T) * 2 * kInner* kStride;
  /// Blocks that a multiprocessor is to hold at a time; bounds the registers.
  template <class T>
  static constexpr int kResident = sizeof(T) == 4 ? 4 : 2;
  static_assert(kRows == kColumns);
};

/// What a thread has of its block's result: rows 4 r to 4 r + 3, every 16th column.
template <class T>
struct ExactSums {
  T number[4][4] = {};

  __device__ static int first_row() { return static_cast<int>(threadIdx.x) / 16 * 4; }
  __device__ static int first_column() { return static_cast<int>(threadIdx.x) % 16; }

  /// += one step of the inner axis. Tiles: [kInner, kStride].
  __device__ __forceinline__ void add(const T* left, const T* right) {
#pragma unroll
    for (int k = 0; k < ExactPast::kInner; ++k) {
      T a[4], b[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        a[i] = left[k * ExactPast::kStride + first_row() + i];
        b[i] = right[k * ExactPast::kStride + first_column() + 16 * i];
      }
#pragma unroll
      for (int r = 0; r < 4; ++r) {
#pragma unroll
        for (int c = 0; c < 4; ++c) number[r][c] += a[r] * b[c];
      }
    }
  }
  /// Calls write(row, column, number).
  template <class WriteOne>
  __device__ __forceinline__ void for_each(WriteOne write) const {
#pragma unroll
    for (int r = 0; r < 4; ++r) {
#pragma unroll
      for (int c = 0; c < 4; ++c) write(first_row() + r, first_column() + 16 * c, number[r][c]);
    }
  }
};

/// Keys and values of 64 rows of a head's packed past, 64 of its columns.
template <class T>
__global__ void __launch_bounds__(ExactPast::kThreads, ExactPast::kResident<T>) project_exact(PastCall<T> call) {
  using Tile = ExactPast;
  constexpr int kEach = 4;  // numbers of an operand for each thread
  const int block = static_cast<int>(blockIdx.x), head = call.head_of(block), part = block - call.first_block[head];
  const int column_tiles = (2 * call.depth + Tile::kColumns - 1) / Tile::kColumns;
  const int row0 = part / column_tiles * Tile::kRows, column0 = part % column_tiles * Tile::kColumns;
  T* const left = dynamic_shared<T>();
  T* const right = left + Tile::kInner * Tile::kStride;

  const int inner = static_cast<int>(threadIdx.x) % 16;
  const T *states[kEach], *weights[kEach];
  int of_state[kEach];  // elements that exist
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    const int row = static_cast<int>(threadIdx.x) / 16 + 16 * j;
    const T* const state = call.state_of(head, row0 + row);
    states[j] = state == nullptr ? call.cache : state;
    of_state[j] = state == nullptr ? 0 : call.width;
    weights[j] = call.weight_row(head, column0 + row);
  }
  // What is not cached is zero, and needs no product.
  const int width = any_cached(call, head, row0, Tile::kRows) ? call.width : 0;
  ExactSums<T> sums;
  for (int first = 0; first < width; first += Tile::kInner) {
    __syncthreads();
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int row = static_cast<int>(threadIdx.x) / 16 + 16 * j, at = first + inner;
      left[inner * Tile::kStride + row] = at < of_state[j] ? states[j][at] : T(0);
      right[inner * Tile::kStride + row] = at < width ? weights[j][at] : T(0);
    }
    __syncthreads();
    sums.add(left, right);
  }
  const int rows = call.streams * call.window[head];
  sums.for_each([&](int row, int column, T number) {
    if (row0 + row >= rows) return;
    T* const to = call.element(call.y, call.packed_row(head, row0 + row), column0 + column);
    if (to != nullptr) *to = number;
  });
}

/// Sums over a share of a head's positions: 64 rows of its weights, keys' before values', 64 columns.
template <class T>
__global__ void __launch_bounds__(ExactPast::kThreads, ExactPast::kResident<T>)
    past_gradient_exact(PastCall<T> call, PastShares shares, T* partial) {
  using Tile = ExactPast;
  constexpr int kEach = 4;
  const GradientPart<Tile> part(call, shares);
  const int row0 = part.row0, column0 = part.column0, end = part.end;
  T* const left = dynamic_shared<T>();
  T* const right = left + Tile::kInner * Tile::kStride;

  const int outer = static_cast<int>(threadIdx.x) % 64, first_inner = static_cast<int>(threadIdx.x) / 64;
  CachedPositions<T> positions(call, part.head, part.begin + first_inner);
  ExactSums<T> sums;
  for (int first = part.begin; first < end; first += Tile::kInner) {
    __syncthreads();
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int inner = first_inner + 4 * j;
      const bool there = first + inner < end;
      const T* const gradient = there ? call.element(call.dy, positions.packed_row(), row0 + outer) : nullptr;
      const T* const state = there && column0 + outer < call.width ? positions.state() : nullptr;
      left[inner * Tile::kStride + outer] = gradient == nullptr ? T(0) : *gradient;
      right[inner * Tile::kStride + outer] = state == nullptr ? T(0) : state[column0 + outer];
      positions.advance(call, 4);
    }
    __syncthreads();
    sums.add(left, right);
  }
  T* const to = partial + part.sums;
  sums.for_each([&](int row, int column, T number) {
    if (row0 + row < 2 * call.depth && column0 + column < call.width)
      to[std::int64_t{row0 + row} * call.width + column0 + column] = number;
  });
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
