#pragma once
/// What a warp does with 16 rows of the tiles of cuda/attention/fused_attention_load.cuh.
///
/// Scores by distance: queries i and keys j of a 16x16 block meet at 31 distances. With blocks that start at multiples
/// of 16 these lie in two runs of 16 distances, each starting at a multiple of 16. So a product of 16 queries with 16
/// position keys serves two neighbouring blocks, and rings whose place is distance modulo their size (a power of two)
/// need no shifting: a ring of position keys in shared memory. Scores by distance lie in a table per warp, where the
/// lanes find those of their own distances (Diagonals).

#include "cuda/attention/fused_attention_dropout.cuh"
#include "cuda/attention/fused_attention_load.cuh"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// 16 rows of a tile as the left operand of products: kept in registers, up to a depth of 64, or read again for every
/// product.
template <int kDepth, bool kHeld = kDepth <= 64, TileLayout kLayout = TileLayout::rows>
class LeftRows {
 public:
  __device__ explicit LeftRows(const bf16* rows) : rows_(rows) {
    if constexpr (kHeld) {
#pragma unroll
      for (int k = 0; k < kDepth / 16; ++k) held_[k] = read(k);
    }
  }
  /// Columns 16 k to 16 k + 15.
  __device__ __forceinline__ const Fragment& held(int k) const {
    static_assert(kHeld);
    return held_[k];
  }
  /// Their products with 16 other rows: element (r, c) is row r times row c of the others.
  __device__ __forceinline__ Sums times(const bf16* others) const {
    Sums sums;
#pragma unroll
    for (int k = 0; k < kDepth / 16; ++k) {
      const RightFragment other = load_right(others + 16 * k, kTileStride<kDepth>);
      if constexpr (kHeld)
        multiply_add(sums, held_[k], other);
      else
        multiply_add(sums, read(k), other);
    }
    return sums;
  }
  /// One or the other, for 16 rows.
  template <bool kByWarpgroup>
  __device__ __forceinline__ Sums times_block(const bf16* others) const {
    if constexpr (kByWarpgroup) {
      Sums sums[1];
      times_operand(sums, others);
      return sums[0];
    } else {
      return times(others);
    }
  }
  /// The same of the 64 rows of a warpgroup, and kBlocks times 16 rows of an operand.
  template <int kBlocks>
  __device__ __forceinline__ void times_operand(Sums (&sums)[kBlocks], const bf16* others) const {
    if constexpr (kHeld) {
      multiply_by_rows(sums, held_, others);
    } else {
      Fragment left[kDepth / 16];
#pragma unroll
      for (int k = 0; k < kDepth / 16; ++k) left[k] = read(k);
      multiply_by_rows(sums, left, others);
    }
  }

 private:
  __device__ __forceinline__ Fragment read(int k) const {
    if constexpr (kLayout == TileLayout::operand)
      return load_operand_fragment(rows_, 16 * k);
    else
      return load_fragment(rows_ + 16 * k, kTileStride<kDepth>);
  }

  const bf16* rows_;
  Fragment held_[kHeld ? kDepth / 16 : 1];
};

/// 16 rows of sums, of the depth of a head.
template <int kDepth>
struct RowSums {
  Sums part[kDepth / 16];

  /// += weights (16x16) times 16 rows of a tile.
  __device__ __forceinline__ void add(const Fragment& weights, const bf16* rows) {
#pragma unroll
    for (int k = 0; k < kDepth / 16; ++k)
      multiply_add(part[k], weights, load_right_transposed(rows + 16 * k, kTileStride<kDepth>));
  }
  /// The same, or the warpgroup's 64 rows of weights times 16 rows of an operand.
  template <bool kByWarpgroup>
  __device__ __forceinline__ void add_block(const Fragment& weights, const bf16* rows) {
    if constexpr (kByWarpgroup) {
      const Fragment one[] = {weights};
      multiply_add_rows(part, one, rows);
    } else {
      add(weights, rows);
    }
  }
  __device__ __forceinline__ void scale(float factor) {
#pragma unroll
    for (int k = 0; k < kDepth / 16; ++k) {
#pragma unroll
      for (int e = 0; e < 8; ++e) part[k].value[e] *= factor;
    }
  }
  __device__ __forceinline__ void add(const RowSums& other) {
#pragma unroll
    for (int k = 0; k < kDepth / 16; ++k) {
#pragma unroll
      for (int e = 0; e < 8; ++e) part[k].value[e] += other.part[k].value[e];
    }
  }
  /// row_of(r) (set or add) factor(r / 8) times row r, for the rows r < 16 that exist.
  template <class RowOf, class Factor>
  __device__ __forceinline__ void write(RowOf row_of, Factor factor, Write write) const {
#pragma unroll
    for (int half = 0; half < 4; half += 2) {
      const int r = Sums::row_of(half);
      auto* const to = row_of(r);
      if (to == nullptr) continue;
      const float f = factor(half / 2);
#pragma unroll
      for (int k = 0; k < kDepth / 16; ++k) {
        const float* const v = part[k].value + half;
        write_two(to + 16 * k + Sums::column_of(0), f * v[0], f * v[1], write);
        write_two(to + 16 * k + Sums::column_of(4), f * v[4], f * v[5], write);
      }
    }
  }
};

/// Scores of 16 rows by the distance between row and column, or something else that grows along a diagonal: 32
/// neighbouring ones meet in a 16x16 block. Element (r, c) of the block is in row r and column 16 + r - c, so what a
/// lane reads is a fixed number of elements from where it begins.
template <int kColumns>
class Diagonals {
 public:
  static constexpr int kStride = kColumns + 4;  // neighbouring rows in other banks
  static constexpr std::size_t kBytes = sizeof(float) * 16 * kStride;

  __device__ explicit Diagonals(float* memory) : memory_(memory) {}
  /// 16 columns from `column` on, a multiple of 16.
  __device__ __forceinline__ void put(int column, const Sums& sums) const {
#pragma unroll
    for (int e = 0; e < 8; e += 2)
      store(memory_ + Sums::row_of(e) * kStride + column + Sums::column_of(e),
            Pack<float, 2>{{sums.value[e], sums.value[e + 1]}});
  }
  /// Of element e of a block whose diagonal is in column 16 + shift: rows r of the memory are the block's rows.
  __device__ __forceinline__ float of_rows(int e, int shift = 0) const {
    return memory_[Sums::row_of(e) * (kStride + 1) - Sums::column_of(e) + 16 + shift];
  }
  /// The same where rows of the memory are the block's columns.
  __device__ __forceinline__ float of_columns(int e) const {
    return memory_[Sums::column_of(e) * (kStride + 1) - Sums::row_of(e) + 16];
  }

 private:
  float* memory_;
};

/// The tile of 16 rows of a ring of tiles, the first of which has number `first`, a multiple of 16.
template <int kDepth>
__device__ __forceinline__ const bf16* ring_rows(const bf16* ring, int first) {
  return ring + (first & (kRingRows - 1)) * kTileStride<kDepth>;
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
