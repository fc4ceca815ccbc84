#pragma once
/// Tiles of rows in shared memory, rounded to bf16, and what a warp does with 16 rows of them.
///
/// Scores by distance: queries i and keys j of a 16x16 block meet at 31 distances. With blocks that start at multiples
/// of 16 these lie in two runs of 16 distances, each starting at a multiple of 16. So a product of 16 queries with 16
/// position keys serves two neighbouring blocks, and rings whose place is distance modulo their size (a power of two)
/// need no shifting: a ring of position keys in shared memory. Scores by distance lie in a table per warp, where the
/// lanes find those of their own distances (Diagonals).

#include "cuda/attention/fused_attention_dropout.cuh"
#include "cuda/shared.cuh"
#include "cuda/storage_access.cuh"
#include "cuda/warpgroup.cuh"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// Elements from row to row of a tile: eight more than a row has, so that neighbouring rows lie in other banks.
template <int kDepth>
inline constexpr int kTileStride = kDepth + 8;
template <int kDepth>
inline constexpr std::size_t kTileBytes = sizeof(bf16) * kTileRows* kTileStride<kDepth>;
/// Rows of a ring of tiles: the distances, or keys, that a tile of queries meets with another tile.
inline constexpr int kRingRows = 2 * kTileRows;
inline constexpr int kTileWarps = kAttentionThreads / kWarpLanes;
static_assert(kTileRows == 16 * kTileWarps);

/// Blocks that a multiprocessor is to hold at a time, so that some load while others multiply; bounds the registers.
template <int kDepth>
inline constexpr int kResidentBlocks = kDepth <= 64 ? 3 : 2;

__device__ __forceinline__ int warp_of_block() { return static_cast<int>(threadIdx.x) / kWarpLanes; }
__device__ __forceinline__ int lane_of_warp() { return static_cast<int>(threadIdx.x) % kWarpLanes; }
/// The multiple of 16 at or below x, which may be negative.
__device__ __forceinline__ int floor16(int x) { return x & ~15; }

/// Hands out the block's dynamic shared memory, piece by piece; pieces are multiples of 16 bytes.
class SharedPieces {
 public:
  __device__ SharedPieces() : next_(dynamic_shared<unsigned char>()) {}
  /// From a piece on that serves no longer.
  __device__ explicit SharedPieces(bf16* from) : next_(reinterpret_cast<unsigned char*>(from)) {}
  template <class T>
  __device__ T* take(std::size_t bytes) {
    T* const piece = reinterpret_cast<T*>(next_);
    next_ += bytes;
    return piece;
  }
  /// One of the same size for every warp: the caller's.
  template <class T>
  __device__ T* of_warp(std::size_t bytes) {
    return take<T>(kTileWarps * bytes) + static_cast<std::size_t>(warp_of_block()) * (bytes / sizeof(T));
  }

 private:
  unsigned char* next_;
};

/// For operands of products by a warpgroup the first piece is aligned to what they need, and so is what follows tiles.
template <bool kOfOperands>
__device__ __forceinline__ SharedPieces shared_pieces() {
  static_assert(kTileBytes<kOperandColumns> % kOperandAlignment == 0);
  return SharedPieces(dynamic_shared < bf16, kOfOperands ? kOperandAlignment : 16 > ());
}

/// How rows lie in shared memory.
enum class TileLayout : std::uint8_t {
  rows,     ///< 64 rows, kTileStride apart
  ring,     ///< the same, at their number modulo kRingRows
  operand,  ///< the right operand of products by a warpgroup (cuda/warpgroup.cuh)
};
/// Of tiles that products by a warpgroup, or by warps, take their right operands from; and elements from row to row.
template <bool kByWarpgroup>
inline constexpr TileLayout kOperandLayout = kByWarpgroup ? TileLayout::operand : TileLayout::rows;
template <int kDepth, bool kByWarpgroup>
inline constexpr int kOperandStride = kByWarpgroup ? kOperandColumns : kTileStride<kDepth>;

/// One thread's share of a tile: eight elements of every kStep-th row, from row `row` on. All are asked for before the
/// first is stored, so that as many loads are under way at once.
template <int kDepth>
class TileShare {
 public:
  static constexpr int kPacks = kDepth / 8, kStep = kAttentionThreads / kPacks, kEach = kTileRows / kStep;
  static_assert(kAttentionThreads % kPacks == 0 && kTileRows % kStep == 0);

  __device__ static int row() { return static_cast<int>(threadIdx.x) / kPacks; }
  __device__ static int column() { return static_cast<int>(threadIdx.x) % kPacks * 8; }

  /// Rows from `first` on; zeros for those that there are not.
  template <class T>
  __device__ __forceinline__ void load(const TensorRows<const T>& rows, int first) {
    if (first >= 0 && first + kTileRows <= rows.count) {  // nearly always: nothing to ask row by row
      const T* const from = rows.first + (std::int64_t{first + row()} * rows.stride + column());
#pragma unroll
      for (int j = 0; j < kEach; ++j) eight_[j] = load_eight(from + j * kStep * rows.stride);
      return;
    }
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const T* const from = rows.row(first + row() + j * kStep);
      load_row(j, from == nullptr ? nullptr : from + column());
    }
  }
  /// Row row() + j kStep from `from`, or zeros.
  template <class T>
  __device__ __forceinline__ void load_row(int j, const T* from) {
    eight_[j] = {};
    if (from != nullptr) eight_[j] = load_eight(from);
  }
  /// Rows from `first` on, of which a ring has kRingRows; for it `first` is a multiple of 16. Behind operands,
  /// operands_stored() is to follow.
  template <TileLayout kLayout>
  __device__ __forceinline__ void store(bf16* tile, int first = 0) const {
    static_assert(kLayout != TileLayout::operand || kDepth == kOperandColumns);
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int own = row() + j * kStep;
      if constexpr (kLayout == TileLayout::operand)
        store_operand(tile, own, column(), eight_[j]);
      else
        put(tile, kLayout == TileLayout::ring ? (first + own) & (kRingRows - 1) : own, j);
    }
  }

 private:
  __device__ __forceinline__ void put(bf16* tile, int row, int j) const {
    Words<4>* const to = reinterpret_cast<Words<4>*>(tile + row * kTileStride<kDepth> + column());
#if defined(ENGRAM_CUDA_SIMULATED)
    store_as(to, eight_[j]);
#else
    *to = eight_[j];  // for nvcc, which unrolls loops otherwise around a call
#endif
  }

  Words<4> eight_[kEach];
};

/// Two tiles of rows. load(of_first, of_second) loads what is not null, each a TileShare. Rows of bf16 are asked for
/// together, so that as many loads are under way at once; those of f32, which take twice the registers, tile by tile.
template <class T, int kDepth, TileLayout kLayout, class Load>
__device__ __forceinline__ void load_both(const Load& load, bf16* first_tile, bf16* second_tile, int first = 0) {
  using Share = TileShare<kDepth>;
  Share of_first, of_second;
  Share* const none = nullptr;
  if constexpr (sizeof(T) > sizeof(bf16)) {
    load(&of_first, none);
    of_first.template store<kLayout>(first_tile, first);
    load(none, &of_second);
  } else {
    load(&of_first, &of_second);
    of_first.template store<kLayout>(first_tile, first);
  }
  of_second.template store<kLayout>(second_tile, first);
  if constexpr (kLayout == TileLayout::operand) operands_stored();
}

/// 64 rows from `first` on. All threads of the block call.
template <int kDepth, class T>
__device__ __forceinline__ void load_tile(bf16* tile, const TensorRows<const T>& rows, int first) {
  TileShare<kDepth> share;
  share.load(rows, first);
  share.template store<TileLayout::rows>(tile);
}
/// Keys and values of one stream and head, by position.
template <class T, int kDepth>
struct ContextRows {
  TensorRows<const T> keys, values, past_keys, past_values;

  __device__ ContextRows(const FusedCall<T>& call, const Place& place)
      : keys(call.query_rows(call.keys, place)),
        values(call.query_rows(call.values, place)),
        past_keys(call.template past_rows<kDepth>(call.past_keys, place)),
        past_values(call.template past_rows<kDepth>(call.past_values, place)) {}
};
/// 64 positions from `first` on, a multiple of 16.
template <int kDepth, TileLayout kLayout, class T>
__device__ __forceinline__ void load_context(const FusedCall<T>& call, const Place& place,
                                             const ContextRows<T, kDepth>& rows, int first, bf16* keys, bf16* values) {
  using Share = TileShare<kDepth>;
  const auto load = [&](Share* of_keys, Share* of_values) {
    if (first >= 0) {
      if (of_keys != nullptr) of_keys->load(rows.keys, first);
      if (of_values != nullptr) of_values->load(rows.values, first);
      return;
    }
#pragma unroll
    for (int j = 0; j < Share::kEach; ++j) {
      const int position = first + Share::row() + j * Share::kStep;
      const T *key = nullptr, *value = nullptr;
      if (position >= 0 ? position < rows.keys.count : position >= -rows.past_keys.count) {
        // Keys and values lie alike.
        const bool here = position >= 0;
        const int number = here ? position : call.past_place(place, position);
        const unsigned from = static_cast<unsigned>(number * (here ? rows.keys.stride : rows.past_keys.stride));
        key = (here ? rows.keys : rows.past_keys).first + (from + static_cast<unsigned>(Share::column()));
        value = (here ? rows.values : rows.past_values).first + (from + static_cast<unsigned>(Share::column()));
      }
      if (of_keys != nullptr) of_keys->load_row(j, key);
      if (of_values != nullptr) of_values->load_row(j, value);
    }
  };
  load_both<T, kDepth, kLayout>(load, keys, values, first);
}
/// Keys and values of 64 persistent slots.
template <int kDepth, TileLayout kLayout, class T>
__device__ __forceinline__ void load_slots(const FusedCall<T>& call, int head, int first, bf16* keys, bf16* values) {
  using Share = TileShare<kDepth>;
  const auto load = [&](Share* of_keys, Share* of_values) {
    if (of_keys != nullptr) of_keys->load(call.template slot_rows<kDepth>(call.slot_keys, head), first);
    if (of_values != nullptr) of_values->load(call.template slot_rows<kDepth>(call.slot_values, head), first);
  };
  load_both<T, kDepth, kLayout>(load, keys, values);
}
/// Position keys of 64 distances from `first` on, a multiple of 16, into their ring.
template <int kDepth, class T>
__device__ __forceinline__ void load_distances(const FusedCall<T>& call, const Place& place, int first, bf16* ring) {
  TileShare<kDepth> share;
  share.load(call.position_rows(place), first - call.nearest);
  share.template store<TileLayout::ring>(ring, first);
}

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
