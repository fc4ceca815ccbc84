#pragma once
/// Projections of the past on tensor cores: operands of bf16, or f32 ones rounded to it, sums in f32.
///
/// A block of 256 threads makes 128 x 128 numbers of its result, a warp 32 x 64 of them. The inner axis comes in steps
/// of 32; what the next step needs is under way while this one is multiplied.

#include "cuda/mma.cuh"
#include "cuda/past_heads.cuh"
#include "cuda/shared.cuh"
#include "cuda/storage_access.cuh"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

struct RoundedPast {
  static constexpr int kThreads = 256, kRows = 128, kColumns = 128, kInner = 32;
  /// Elements from row to row of a tile: eight more than a row has, so that neighbouring rows lie in other banks.
  static constexpr int kInnerStride = kInner + 8, kOuterStride = kRows + 8;
  static constexpr std::size_t kForwardBytes = sizeof(bf16) * (kRows + kColumns) * kInnerStride;
  static constexpr std::size_t kBackwardBytes = sizeof(bf16) * 2 * kInner * kOuterStride;
  static_assert(kRows == kColumns);
};

__device__ __forceinline__ Words<4> rounded_eight(const float (&number)[8]) {
  return {{rounded_pair(number[0], number[1]), rounded_pair(number[2], number[3]), rounded_pair(number[4], number[5]),
           rounded_pair(number[6], number[7])}};
}
/// Eight elements from `from` on, of which only the first `there` exist; 0 or less: none do.
template <bool kPacks, class T>
__device__ __forceinline__ Words<4> past_pack(const T* from, int there) {
  if (there <= 0) return {};
  if constexpr (kPacks) {
    return load_eight(from);
  } else {
    float number[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) number[j] = j < there ? static_cast<float>(from[j]) : 0.0f;
    return rounded_eight(number);
  }
}

/// What a warp has of its block's result.
struct PastSums {
  Sums part[2][4];

  __device__ static int first_row() { return static_cast<int>(threadIdx.x) / kWarpLanes / 2 * 32; }
  __device__ static int first_column() { return static_cast<int>(threadIdx.x) / kWarpLanes % 2 * 64; }

  /// += one step of the inner axis, 32 of it: left_at(row, inner) and right_at(column, inner) load blocks of 16 x 16.
  template <class Left, class Right>
  __device__ __forceinline__ void add(Left left_at, Right right_at) {
#pragma unroll
    for (int inner = 0; inner < RoundedPast::kInner; inner += 16) {
      const Fragment left[2] = {left_at(first_row(), inner), left_at(first_row() + 16, inner)};
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const RightFragment right = right_at(first_column() + 16 * c, inner);
        multiply_add(part[0][c], left[0], right);
        multiply_add(part[1][c], left[1], right);
      }
    }
  }
  /// Calls write(row, column, two neighbouring numbers).
  template <class Write2>
  __device__ __forceinline__ void for_each_pair(Write2 write) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
#pragma unroll
        for (int e = 0; e < 8; e += 2)
          write(first_row() + 16 * r + Sums::row_of(e), first_column() + 16 * c + Sums::column_of(e),
                part[r][c].value[e], part[r][c].value[e + 1]);
      }
    }
  }
};

/// Keys and values of 128 rows of a head's packed past, 128 of its columns.
template <class T, bool kPacks>
__global__ void __launch_bounds__(RoundedPast::kThreads, 2) project_rounded(PastCall<T> call) {
  using Tile = RoundedPast;
  constexpr int kEach = Tile::kRows * Tile::kInner / 8 / Tile::kThreads;  // packs of an operand for each thread
  const int head = call.head_of(static_cast<int>(blockIdx.x)),
            part = static_cast<int>(blockIdx.x) - call.first_block[head];
  const int column_tiles = (2 * call.depth + Tile::kColumns - 1) / Tile::kColumns;
  const int row0 = part / column_tiles * Tile::kRows, column0 = part % column_tiles * Tile::kColumns;
  bf16* const left = dynamic_shared<bf16>();
  bf16* const right = left + Tile::kRows * Tile::kInnerStride;

  const int inner = static_cast<int>(threadIdx.x) % 4 * 8;
  const T *states[kEach], *weights[kEach];
  int of_state[kEach];  // elements that exist: none of a state that is not cached
  bf16* to[kEach];
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    const int row = static_cast<int>(threadIdx.x) / 4 + j * (Tile::kThreads / 4);
    const T* const state = call.state_of(head, row0 + row);
    states[j] = state == nullptr ? call.cache : state;
    of_state[j] = state == nullptr ? 0 : call.width;
    weights[j] = call.weight_row(head, column0 + row);
    to[j] = left + row * Tile::kInnerStride + inner;
  }
  Words<4> of_states[kEach], of_weights[kEach];
  const auto read = [&](int first) {
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int at = first + inner;
      of_states[j] = past_pack<kPacks>(states[j] + at, of_state[j] - at);
      of_weights[j] = past_pack<kPacks>(weights[j] + at, call.width - at);
    }
  };
  const int rows = call.streams * call.window[head];
  // What is not cached is zero, and needs no product.
  const int width = any_cached(call, head, row0, Tile::kRows) ? call.width : 0;
  const bool idle = row0 + PastSums::first_row() >= rows || column0 + PastSums::first_column() >= 2 * call.depth;
  PastSums sums;
  if (width > 0) read(0);
  for (int first = 0; first < width; first += Tile::kInner) {
    __syncthreads();
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      store_as(to[j], of_states[j]);
      store_as(to[j] + (right - left), of_weights[j]);
    }
    __syncthreads();
    if (first + Tile::kInner < width) read(first + Tile::kInner);
    if (!idle)
      sums.add(
          [&](int row, int k) { return load_fragment(left + row * Tile::kInnerStride + k, Tile::kInnerStride); },
          [&](int column, int k) { return load_right(right + column * Tile::kInnerStride + k, Tile::kInnerStride); });
  }
  if (idle) return;
  sums.for_each_pair([&](int row, int column, float x, float y) {
    if (row0 + row >= rows) return;
    const std::int64_t packed_row = call.packed_row(head, row0 + row);
    T* const first = call.element(call.y, packed_row, column0 + column);
    if (first == nullptr) return;
    if (call.depth % 2 == 0) return write_two(first, x, y, Write::set);
    store(first, Pack<float, 1>{{x}});
    T* const second = call.element(call.y, packed_row, column0 + column + 1);
    if (second != nullptr) store(second, Pack<float, 1>{{y}});
  });
}

/// Sums over a share of a head's positions: 128 rows of its weights, keys' before values', 128 columns.
template <class T, bool kPacks>
__global__ void __launch_bounds__(RoundedPast::kThreads, 2)
    past_gradient_rounded(PastCall<T> call, PastShares shares, float* partial) {
  using Tile = RoundedPast;
  constexpr int kEach = Tile::kInner * Tile::kRows / 8 / Tile::kThreads;
  const GradientPart<Tile> part(call, shares);
  const int row0 = part.row0, column0 = part.column0, end = part.end;
  bf16* const left = dynamic_shared<bf16>();
  bf16* const right = left + Tile::kInner * Tile::kOuterStride;

  const int outer = static_cast<int>(threadIdx.x) % 16 * 8, first_inner = static_cast<int>(threadIdx.x) / 16;
  constexpr int kApart = Tile::kThreads / 16;
  CachedPositions<T> positions(call, part.head, part.begin + first_inner);
  Words<4> of_gradients[kEach], of_states[kEach];
  // Of the thread's columns, in any row: where they begin, and how many of eight there are.
  const int own_row = row0 + outer, of_state = call.width - column0 - outer;
  const T* const found = call.element(call.dy, 0, own_row);
  const T* const gradients = found == nullptr ? call.cache : found;
  const int of_gradient = found == nullptr ? 0 : 8;
  // The thread's positions of a step are 16 apart; it goes through them in order.
  const auto read = [&](int first) {
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const bool there = first + first_inner + j * kApart < end;
      if constexpr (kPacks) {
        of_gradients[j] = past_pack<true>(gradients + positions.packed_row(), there ? of_gradient : 0);
      } else {
        float number[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          const T* const one = there ? call.element(call.dy, positions.packed_row(), own_row + i) : nullptr;
          number[i] = one == nullptr ? 0.0f : static_cast<float>(*one);
        }
        of_gradients[j] = rounded_eight(number);
      }
      of_states[j] = past_pack<kPacks>(positions.state() + column0 + outer, there ? of_state : 0);
      positions.advance(call, kApart);
    }
  };
  const bool idle = row0 + PastSums::first_row() >= 2 * call.depth || column0 + PastSums::first_column() >= call.width;
  PastSums sums;
  read(part.begin);
  for (int first = part.begin; first < end; first += Tile::kInner) {
    __syncthreads();
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      bf16* const to = left + (first_inner + j * kApart) * Tile::kOuterStride + outer;
      store_as(to, of_gradients[j]);
      store_as(to + (right - left), of_states[j]);
    }
    __syncthreads();
    if (first + Tile::kInner < end) read(first + Tile::kInner);
    if (!idle)
      sums.add([&](int row,
                   int k) { return load_fragment_transposed(left + k * Tile::kOuterStride + row, Tile::kOuterStride); },
               [&](int column, int k) {
                 return load_right_transposed(right + k * Tile::kOuterStride + column, Tile::kOuterStride);
               });
  }
  if (idle) return;
  float* const to = partial + part.sums;
  sums.for_each_pair([&](int row, int column, float x, float y) {
    if (row0 + row >= 2 * call.depth || column0 + column >= call.width) return;
    float* const first = to + std::int64_t{row0 + row} * call.width + column0 + column;
    if (call.width % 2 == 0) return write_two(first, x, y, Write::set);
    first[0] = x;
    if (column0 + column + 1 < call.width) first[1] = y;
  });
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
