#pragma once
/// Tiles of rows in shared memory, rounded to bf16, and what a warp does with 16 rows of them.
///
/// Scores by distance: queries i and keys j of a 16x16 block meet at 31 distances. With blocks that start at multiples
/// of 16 these lie in two runs of 16 distances, each starting at a multiple of 16. So a product of 16 queries with 16
/// position keys serves two neighbouring blocks, and rings whose place is distance modulo their size (a power of two)
/// need no shifting: a ring of position keys in shared memory, and one of 32 columns of scores per warp, where the
/// lanes find the score of their own distance.

#include "cuda/attention/fused_attention_call.cuh"
#include "cuda/mma.cuh"
#include "cuda/shared.cuh"
#include "cuda/storage_access.cuh"

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

/// Rows first, ..., first + count - 1 into a ring of kRing rows; row_of(i) is where row i lies, nullptr for zeros. All
/// threads of the block call.
template <int kDepth, int kRing, class RowOf>
__device__ __forceinline__ void load_rows(bf16* tile, int first, int count, RowOf row_of) {
  constexpr int kPacks = kDepth / 8;
  for (int i = static_cast<int>(threadIdx.x); i < count * kPacks; i += kAttentionThreads) {
    const int row = first + i / kPacks, pack = i % kPacks * 8;
    const auto* const from = row_of(row);
    Words<4> eight{};
    if (from != nullptr) eight = load_eight(from + pack);
    *reinterpret_cast<Words<4>*>(tile + (row & (kRing - 1)) * kTileStride<kDepth> + pack) = eight;
  }
}
/// load_rows() for a whole tile whose first row need not be a multiple of its size.
template <int kDepth, class RowOf>
__device__ __forceinline__ void load_tile(bf16* tile, int first, RowOf row_of) {
  load_rows<kDepth, kTileRows>(tile, 0, kTileRows, [&](int row) { return row_of(first + row); });
}

/// Keys and values of 64 positions.
template <int kDepth, class T>
__device__ __forceinline__ void load_context(const FusedCall<T>& call, const Place& place, int first, bf16* keys,
                                             bf16* values) {
  load_tile<kDepth>(keys, first, [&](int c) { return call.context_row(call.past_keys, call.keys, place, c); });
  load_tile<kDepth>(values, first, [&](int c) { return call.context_row(call.past_values, call.values, place, c); });
}
/// Keys and values of 64 persistent slots.
template <int kDepth, class T>
__device__ __forceinline__ void load_slots(const FusedCall<T>& call, int head, int first, bf16* keys, bf16* values) {
  load_tile<kDepth>(keys, first, [&](int n) { return call.slot_row(call.slot_keys, head, n); });
  load_tile<kDepth>(values, first, [&](int n) { return call.slot_row(call.slot_values, head, n); });
}
/// Position keys of `count` distances into their ring.
template <int kDepth, class T>
__device__ __forceinline__ void load_distances(const FusedCall<T>& call, const Place& place, int first, int count,
                                               bf16* ring) {
  load_rows<kDepth, kRingRows>(ring, first, count, [&](int distance) { return call.position_row(place, distance); });
}

/// 16 rows of a tile as the left operand of products: kept in registers, up to a depth of 64, or read again for every
/// product.
template <int kDepth, bool kHeld = kDepth <= 64>
class LeftRows {
 public:
  __device__ explicit LeftRows(const bf16* rows) : rows_(rows) {
    if constexpr (kHeld) {
#pragma unroll
      for (int k = 0; k < kDepth / 16; ++k) held_[k] = load_fragment(rows + 16 * k, kTileStride<kDepth>);
    }
  }
  /// Their products with 16 other rows: element (r, c) is row r times row c of the others.
  __device__ __forceinline__ Sums times(const bf16* others) const {
    Sums sums;
#pragma unroll
    for (int k = 0; k < kDepth / 16; ++k) {
      const Fragment other = load_fragment(others + 16 * k, kTileStride<kDepth>);
      if constexpr (kHeld)
        multiply_add(sums, held_[k], other);
      else
        multiply_add(sums, load_fragment(rows_ + 16 * k, kTileStride<kDepth>), other);
    }
    return sums;
  }

 private:
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
      multiply_add(part[k], weights, load_transposed(rows + 16 * k, kTileStride<kDepth>));
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

/// Columns of a ring of scores of 16 rows, and elements from row to row (a multiple of 16 bytes, in other banks).
inline constexpr int kRingColumns = 32, kRingStride = 40;
inline constexpr std::size_t kRingBytes = sizeof(float) * 16 * kRingStride;

/// Places 16 columns, the first of which is a multiple of 16.
__device__ __forceinline__ void put_columns(float* ring, int first, const Sums& sums) {
#pragma unroll
  for (int e = 0; e < 8; e += 2)
    store(ring + Sums::row_of(e) * kRingStride + (first & (kRingColumns - 1)) + Sums::column_of(e),
          Pack<float, 2>{{sums.value[e], sums.value[e + 1]}});
}
/// Products of 16 rows with 16 rows of a ring of tiles, the first of which has number `first`, a multiple of 16.
template <int kDepth, bool kHeld>
__device__ __forceinline__ void put_products(float* ring, int first, const LeftRows<kDepth, kHeld>& rows,
                                             const bf16* others) {
  put_columns(ring, first, rows.times(others + (first & (kRingRows - 1)) * kTileStride<kDepth>));
}
__device__ __forceinline__ float ring_value(const float* ring, int row, int column) {
  return ring[row * kRingStride + (column & (kRingColumns - 1))];
}

/// Which weights of 16 queries dropout keeps, for kColumns neighbouring places: drawn by the warp together, as one
/// random block decides for eight of them.
template <int kColumns>
class KeepBits {
 public:
  static constexpr int kBlocks = kColumns / 8 + 1;
  static constexpr std::size_t kBytes = (16 * kBlocks + 15) / 16 * 16;

  template <class T>
  __device__ KeepBits(std::uint8_t* memory, const FusedCall<T>& call)
      : bits_(memory),
        random_(call.random),
        rule_(call.dropout),
        drops_(call.drops),
        multiplier_(call.dropout_multiplier) {}
  /// element_of(query): number of the random element of column 0. Does nothing without dropout.
  template <class ElementOf>
  __device__ __forceinline__ void draw(ElementOf element_of) const {
    if (!drops_) return;
    constexpr int kPerBlock = DropoutRule::kElementsPerBlock;
    __syncwarp();  // the bits before these may still be read
#pragma unroll 1   // random numbers side by side would take the registers of the sums
    for (int i = lane_of_warp(); i < 16 * kBlocks; i += kWarpLanes) {
      // Places before the first query's row have numbers below 0, which wrap around.
      const std::uint64_t element = element_of(i / kBlocks) + static_cast<std::uint64_t>(i % kBlocks * kPerBlock);
      const PhiloxBlock numbers = random_.draw(element / kPerBlock);
      unsigned kept = 0;
      for (int e = 0; e < kPerBlock; ++e) kept |= static_cast<unsigned>(rule_.keeps(numbers, e)) << e;
      bits_[i] = static_cast<std::uint8_t>(kept);
    }
    __syncwarp();
  }
  /// Bit e: whether element e of a lane's sums is kept, which is at query_of(e) and column_of(e).
  template <class ElementOf, class QueryOf, class ColumnOf>
  __device__ __forceinline__ unsigned kept(ElementOf element_of, QueryOf query_of, ColumnOf column_of) const {
    if (!drops_) return 0xff;
    unsigned kept = 0;
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int query = query_of(e), place = static_cast<int>(element_of(query) % 8) + column_of(e);
      kept |= (bits_[query * kBlocks + place / 8] >> (place % 8) & 1u) << e;
    }
    return kept;
  }
  /// What a weight is multiplied by, given its bit of these.
  __device__ __forceinline__ float multiplier(unsigned kept, int e) const {
    return (kept >> e & 1u) != 0 ? multiplier_ : 0.0f;
  }

 private:
  std::uint8_t* bits_;
  RandomStream random_;
  DropoutRule rule_;
  bool drops_;
  float multiplier_;
};

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
