#pragma once
/// Tiles of rows in shared memory, rounded to bf16: where they lie, and how a block loads them.

#include <cstdint>
#include <type_traits>

#include "cuda/async_copy.cuh"
#include "cuda/attention/fused_attention_call.cuh"
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

/// One thread's share of a tile: eight elements of every kStep-th row, from row `row` on. Rows of bf16 are copied while
/// the thread goes on. Those of f32 are to be rounded: all are asked for before the first is stored, so that as many
/// loads are under way at once. finish_tiles() is to follow in either case.
template <class T, int kDepth, TileLayout kLayout>
class TileShare {
 public:
  static constexpr bool kCopied = std::is_same_v<T, bf16>;
  static constexpr int kPacks = kDepth / 8, kStep = kAttentionThreads / kPacks, kEach = kTileRows / kStep;
  static_assert(kAttentionThreads % kPacks == 0 && kTileRows % kStep == 0);
  static_assert(kLayout != TileLayout::operand || kDepth == kOperandColumns);

  /// ring_first: where the tile's first row lies in a ring, modulo kRingRows; a multiple of 16.
  __device__ explicit TileShare(bf16* tile, int ring_first = 0) : tile_(tile), ring_first_(ring_first) {}
  __device__ static int row() { return static_cast<int>(threadIdx.x) / kPacks; }
  __device__ static int column() { return static_cast<int>(threadIdx.x) % kPacks * 8; }

  /// Rows from `first` on; zeros for those that there are not.
  __device__ __forceinline__ void load(const TensorRows<const T>& rows, int first) {
    if constexpr (kCopied) {
      const auto count = static_cast<unsigned>(rows.count), number = static_cast<unsigned>(first + row());
      // An address is a number here, as one of a row that there is not may not be a pointer.
      const auto from = reinterpret_cast<std::uintptr_t>(rows.first);
      const unsigned begin = number * static_cast<unsigned>(rows.stride) + static_cast<unsigned>(column());
#pragma unroll
      for (unsigned j = 0; j < kEach; ++j) {
        const unsigned element = begin + j * kStep * static_cast<unsigned>(rows.stride);
        copy(static_cast<int>(j), reinterpret_cast<const void*>(from + std::uintptr_t{element} * sizeof(T)),
             number + j * kStep < count);
      }
    } else if (first >= 0 && first + kTileRows <= rows.count) {  // nearly always: nothing to ask row by row
      const T* const from = rows.first + (std::int64_t{first + row()} * rows.stride + column());
#pragma unroll
      for (int j = 0; j < kEach; ++j) eight_[j] = load_eight(from + j * kStep * rows.stride);
    } else {
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        const T* const from = rows.row(first + row() + j * kStep);
        load_row(j, from == nullptr ? nullptr : from + column());
      }
    }
  }
  /// Row row() + j kStep from `from`, or zeros.
  __device__ __forceinline__ void load_row(int j, const T* from) {
    if constexpr (kCopied) {
      copy(j, from, from != nullptr);
    } else {
      eight_[j] = {};
      if (from != nullptr) eight_[j] = load_eight(from);
    }
  }
  /// Such a row, which there is.
  __device__ __forceinline__ void bring(int j, const T* from) {
    if constexpr (kCopied)
      copy(j, from, true);
    else
      eight_[j] = load_eight(from);
  }
  /// After all loads.
  __device__ __forceinline__ void store() const {
    if constexpr (!kCopied) {
#pragma unroll
      for (int j = 0; j < kEach; ++j) put(j, eight_[j]);
    }
  }

 private:
  __device__ __forceinline__ bf16* place(int j) const {
    const int own = row() + j * kStep;
    return tile_ + (kLayout == TileLayout::ring ? (ring_first_ + own) & (kRingRows - 1) : own) * kTileStride<kDepth> +
           column();
  }
  __device__ __forceinline__ void copy(int j, const void* from, bool exists) const {
    if constexpr (kLayout == TileLayout::operand)
      copy_operand(tile_, row() + j * kStep, column(), from, exists);
    else
      begin_copy(place(j), from, exists);
  }
  __device__ __forceinline__ void put(int j, const Words<4>& eight) const {
    if constexpr (kLayout == TileLayout::operand) {
      store_operand(tile_, row() + j * kStep, column(), eight);
    } else {
#if defined(ENGRAM_CUDA_SIMULATED)
      store_as(place(j), eight);
#else
      *reinterpret_cast<Words<4>*>(place(j)) = eight;  // for nvcc, which unrolls loops otherwise around a call
#endif
    }
  }

  bf16* tile_;
  int ring_first_;
  Words<4> eight_[kCopied ? 1 : kEach];
};

/// Behind loads of tiles, and before the barrier: what this thread has loaded lies there. kOfOperands: some are.
template <class T, bool kOfOperands = false>
__device__ __forceinline__ void finish_tiles() {
  if constexpr (std::is_same_v<T, bf16>) wait_for_copies();
  if constexpr (kOfOperands) operands_stored();
}

/// Two tiles of rows. load(of_first, of_second) loads what is not null, each a TileShare. Copies are begun together;
/// rows of f32, which take registers meanwhile, are loaded tile by tile.
template <class Share, class Load>
__device__ __forceinline__ void load_both(const Load& load, bf16* first_tile, bf16* second_tile, int ring_first = 0) {
  Share of_first(first_tile, ring_first), of_second(second_tile, ring_first);
  Share* const none = nullptr;
  if constexpr (Share::kCopied) {
    load(&of_first, &of_second);
  } else {
    load(&of_first, none);
    of_first.store();
    load(none, &of_second);
    of_second.store();
  }
}

/// 64 rows from `first` on. All threads of the block call.
template <int kDepth, class T>
__device__ __forceinline__ void load_tile(bf16* tile, const TensorRows<const T>& rows, int first) {
  TileShare<T, kDepth, TileLayout::rows> share(tile);
  share.load(rows, first);
  share.store();
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
  using Share = TileShare<T, kDepth, kLayout>;
  const auto load = [&](Share* of_keys, Share* of_values) {
    if (first >= 0 && first + kTileRows <= rows.keys.count) {  // nearly always; keys and values lie alike
      const int stride = rows.keys.stride, from = (first + Share::row()) * stride + Share::column();
#pragma unroll
      for (int j = 0; j < Share::kEach; ++j) {
        const unsigned element = static_cast<unsigned>(from + j * Share::kStep * stride);
        if (of_keys != nullptr) of_keys->bring(j, rows.keys.first + element);
        if (of_values != nullptr) of_values->bring(j, rows.values.first + element);
      }
      return;
    }
#pragma unroll
    for (int j = 0; j < Share::kEach; ++j) {
      const int position = first + Share::row() + j * Share::kStep;
      const T *key = nullptr, *value = nullptr;
      if (position >= 0 ? position < rows.keys.count : position >= -rows.past_keys.count) {
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
  load_both<Share>(load, keys, values, first);
}
/// Keys and values of 64 persistent slots.
template <int kDepth, TileLayout kLayout, class T>
__device__ __forceinline__ void load_slots(const FusedCall<T>& call, int head, int first, bf16* keys, bf16* values) {
  using Share = TileShare<T, kDepth, kLayout>;
  const auto load = [&](Share* of_keys, Share* of_values) {
    if (of_keys != nullptr) of_keys->load(call.template slot_rows<kDepth>(call.slot_keys, head), first);
    if (of_values != nullptr) of_values->load(call.template slot_rows<kDepth>(call.slot_values, head), first);
  };
  load_both<Share>(load, keys, values);
}
/// Position keys of 64 distances from `first` on, a multiple of 16, into their ring.
template <int kDepth, class T>
__device__ __forceinline__ void load_distances(const FusedCall<T>& call, const Place& place, int first, bf16* ring) {
  TileShare<T, kDepth, TileLayout::ring> share(ring, first);
  share.load(call.position_rows(place), first - call.nearest);
  share.store();
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
