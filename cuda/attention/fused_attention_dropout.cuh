#pragma once
/// Which weights dropout keeps, of a tile of 64 queries and 64 neighbouring places of their rows: one bit each, in
/// shared memory. A Philox block decides for eight places (core/random_stream.hpp), so a lane draws four blocks for 32
/// places of one query, or five where these do not begin with a block.
///
/// The decisions of 32 places lie in one word, from the top: those of even places in the lower half, those of odd
/// places in the upper one. So a lane finds its pairs of neighbouring columns in equal places of the two halves, and
/// shifting by half the column brings them to the sign of a byte, which one instruction spreads to a mask.

#include "cuda/attention/fused_attention_call.cuh"
#include "cuda/mma.cuh"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// 16 ones in the lower half where byte kLow of x has its sign set, and in the upper half for byte kHigh.
template <int kLow, int kHigh>
__device__ __forceinline__ std::uint32_t spread_signs(std::uint32_t x) {
#if defined(ENGRAM_CUDA_SIMULATED)
  return ((x >> (8 * kLow + 7) & 1u) != 0 ? 0xffffu : 0u) | ((x >> (8 * kHigh + 7) & 1u) != 0 ? 0xffff0000u : 0u);
#else
  std::uint32_t mask;
  asm("prmt.b32 %0, %1, 0, %2;" : "=r"(mask) : "r"(x), "n"(0x8888 | kLow * 0x11 | kHigh * 0x1100));
  return mask;
#endif
}

/// The decisions for a lane's elements of a 16x16 block of sums.
template <int kWords>
struct Kept {
  std::uint32_t word[kWords];
};
/// Rows are queries: word of row g and of row g + 8.
struct KeptRows : Kept<2> {
  __device__ __forceinline__ bool keeps(int e) const {
    return (word[e / 2 % 2] & 1u << ((e % 2 != 0 ? 31 : 15) - (e & 4))) != 0;
  }
  /// Of elements 2 pair and 2 pair + 1, both in one word.
  template <int kPair>
  __device__ __forceinline__ std::uint32_t mask() const {
    return spread_signs<1, 3>(kPair < 2 ? word[kPair % 2] : word[kPair % 2] << 4);
  }
};
/// Columns are queries: a word of each of the lane's four columns, in order. kBackward: places run against the rows.
template <bool kBackward>
struct KeptColumns : Kept<4> {
  __device__ __forceinline__ bool keeps(int e) const {
    return (word[(e & 1) + (e & 4) / 2] & 1u << (((e & 2) == 0) != kBackward ? 31 : 27)) != 0;
  }
};

class KeepBits {
 public:
  static constexpr std::size_t kBytes = 2 * kTileRows * sizeof(std::uint32_t);

  /// Without dropout all are kept; threads of the block meet at a barrier before they ask.
  template <class T>
  __device__ KeepBits(std::uint32_t* memory, const FusedCall<T>& call) : words_(memory), drops_(call.drops) {
    if (!drops_) {
      words_[threadIdx.x] = ~0u;
      return;
    }
    piece_ = call.random.scalars->piece << 16;
    step_ = static_cast<std::uint32_t>(call.random.scalars->step);
    static_assert(kAttentionThreads == 2 * kTileRows);
  }

  /// The query of the tile whose bits this lane draws: a warp draws for its own 16.
  __device__ static int drawn_query() { return static_cast<int>(threadIdx.x) / kWarpLanes * 16 + lane() % 16; }
  /// first: number of the random element of drawn_query() and the tile's first place. kAligned: it is a multiple of 8.
  template <bool kAligned, class T>
  __device__ __forceinline__ void draw(const FusedCall<T>& call, std::uint64_t first) const {
    if (!drops_) return;
    const std::uint64_t element = first_of_lane(first);
    const DrawnBlocks blocks = blocks_from(element);
    std::uint32_t kept = draw_four(call, blocks, blocks.decisions(call, 0));
    if constexpr (!kAligned) kept = shifted(kept, blocks.decisions(call, 4), static_cast<unsigned>(element) % 8);
    keep(kept);
  }

  /// Tiles of the same queries one after the other, each 64 places after the one before. The first block of 32 places
  /// is the last one of the 32 before it, and not drawn twice.
  struct Run {
    std::uint32_t next;  ///< decisions of the next tile's first block
  };
  template <class T>
  __device__ __forceinline__ Run begin_run(const FusedCall<T>& call, std::uint64_t first) const {
    return {drops_ ? blocks_from(first).decisions(call, 0) : 0};
  }
  /// draw<false>() of the run's next tile. All lanes of the warp call together.
  template <class T>
  __device__ __forceinline__ void draw(const FusedCall<T>& call, std::uint64_t first, Run& run) const {
    if (!drops_) return;
    const std::uint64_t element = first_of_lane(first);
    const DrawnBlocks blocks = blocks_from(element);
    const std::uint32_t last = blocks.decisions(call, 4), of_other = __shfl_xor_sync(kAllLanes, last, 16);
    const std::uint32_t kept = draw_four(call, blocks, lane() < 16 ? run.next : of_other);
    run.next = of_other;
    keep(shifted(kept, last, static_cast<unsigned>(element) % 8));
  }

  /// Of the warp's own 16 queries, and of 16 places from 16 block on.
  __device__ __forceinline__ KeptRows rows(int block) const {
    KeptRows kept;
    const int half = block / 2, shift = lane() % 4 + block % 2 * 8;
    for (int i = 0; i < 2; ++i) kept.word[i] = words_[half * kTileRows + warp() * 16 + lane() / 4 + 8 * i] << shift;
    return kept;
  }
  /// Of 16 queries from `query` on, and of the warp's own 16 places.
  /// kBackward: the tile's last place belongs to the first row of the first warp.
  template <bool kBackward = false>
  __device__ __forceinline__ KeptColumns<kBackward> columns(int query) const {
    const int first = kBackward ? kTileRows - 16 - 16 * warp() : 16 * warp();
    // Of a lane's two places, eight apart, the earlier one has the higher bit.
    const int place = first % 32 + (kBackward ? 7 - lane() / 4 : lane() / 4);
    const int shift = place / 2 + (place % 2 != 0 ? 0 : 16);
    KeptColumns<kBackward> kept;
    for (int i = 0; i < 4; ++i)
      kept.word[i] = words_[first / 32 * kTileRows + query + lane() % 4 * 2 + i % 2 + i / 2 * 8] << shift;
    return kept;
  }

 private:
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % kWarpLanes; }
  __device__ static int warp() { return static_cast<int>(threadIdx.x) / kWarpLanes; }

  /// philox() of core/philox.hpp with the round keys of the call, which are constants of the kernel: made from round to
  /// round they would take instructions or registers.
  struct DrawnBlocks {
    std::uint64_t first;
    std::uint32_t piece, step;

    /// Of the eight elements of block first + i: in bits 15 to 12 those of elements 0, 2, 4, 6, in bits 31 to 28 those
    /// of 1, 3, 5, 7. The other bits have no meaning.
    template <class T>
    __device__ __forceinline__ std::uint32_t decisions(const FusedCall<T>& call, unsigned i) const {
      const std::uint64_t block = first + i;
      PhiloxBlock x{{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32) ^ piece,
                     call.random.operation, step}};
#pragma unroll
      for (int round = 0; round < 10; ++round) {
        const std::uint64_t product0 = std::uint64_t{0xD2511F53u} * x.word[0];
        const std::uint64_t product1 = std::uint64_t{0xCD9E8D57u} * x.word[2];
        x = {{static_cast<std::uint32_t>(product1 >> 32) ^ x.word[1] ^ call.round_keys[round][0],
              static_cast<std::uint32_t>(product1),
              static_cast<std::uint32_t>(product0 >> 32) ^ x.word[3] ^ call.round_keys[round][1],
              static_cast<std::uint32_t>(product0)}};
      }
      // A half-word is compared by its lower 15 bits, with the top one set so that nothing is borrowed from the other
      // half, and then by its top bit: kept if at least two of the half-word's, the difference's, and the threshold's
      // reversed are set.
      std::uint32_t kept = 0;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const std::uint32_t word = x.word[j], difference = (word | 0x80008000u) - call.keep_low_bits;
        const std::uint32_t keeps =
            (word & difference) | (word & call.keep_reversed_top) | (difference & call.keep_reversed_top);
        const std::uint32_t before = 0xffffu << (16 - j) & 0xffffu;  // the bits of the words before this one
        const std::uint32_t taken = before | before << 16;
        kept = j == 0 ? keeps : (kept & taken) | (keeps >> j & ~taken);
      }
      return kept;
    }
  };

  /// Of the first of the lane's 32 places; `first` is of the tile's.
  __device__ static std::uint64_t first_of_lane(std::uint64_t first) {
    return first + static_cast<std::uint64_t>(lane() / 16 * 32);
  }
  /// The block of an element, and those that follow. Places before the first query's row have numbers below 0: nobody
  /// reads them, but their neighbours must be right.
  __device__ __forceinline__ DrawnBlocks blocks_from(std::uint64_t element) const {
    return {static_cast<std::uint64_t>(static_cast<std::int64_t>(element) >> 3), piece_, step_};
  }
  /// The decisions of four blocks, the first of which are there.
  template <class T>
  __device__ __forceinline__ static std::uint32_t draw_four(const FusedCall<T>& call, const DrawnBlocks& blocks,
                                                            std::uint32_t first) {
    std::uint32_t kept = insert(0, first, 0);
#pragma unroll
    for (unsigned i = 1; i < 4; ++i) kept = insert(kept, blocks.decisions(call, i), i);
    return kept;
  }
  __device__ __forceinline__ void keep(std::uint32_t kept) const {
    words_[lane() / 16 * kTileRows + drawn_query()] = kept;
  }
  /// With the decisions of the i-th block at their places.
  __device__ __forceinline__ static std::uint32_t insert(std::uint32_t kept, std::uint32_t decisions, unsigned i) {
    const std::uint32_t before = 0xffffu << (16 - 4 * i) & 0xffffu, taken = before | before << 16;
    return i == 0 ? decisions : (kept & taken) | (decisions >> (4 * i) & ~taken);
  }
  /// The 32 decisions from place `offset` < 8 on, of 32 and the four pairs that follow.
  __device__ __forceinline__ static std::uint32_t shifted(std::uint32_t kept, std::uint32_t next, unsigned offset) {
    const std::uint32_t even = kept << 16 | (next & 0xffffu), odd = (kept & 0xffff0000u) | next >> 16;
    const bool swapped = offset % 2 != 0;
    const std::uint32_t lower = (swapped ? odd : even) << offset / 2;
    const std::uint32_t upper = (swapped ? even << 1 : odd) << offset / 2;
    return lower >> 16 | (upper & 0xffff0000u);
  }

  std::uint32_t* words_;  // [2][64]: of the places 0 to 31 and 32 to 63, by query
  bool drops_;
  std::uint32_t piece_ = 0, step_ = 0;
};

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
