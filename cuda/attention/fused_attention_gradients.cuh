#pragma once
/// What the kernels of the backward pass of fused attention share: numbers of the queries, and weights from scores.

#include "cuda/attention/fused_attention_band.cuh"
#include "cuda/attention/fused_attention_tile.cuh"
#include "cuda/power_of_two.cuh"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// Of every query and head, [B, H, M].
struct QueryNumbers {
  const float* lse;  ///< the forward pass's
  float* total;      ///< dout . out; the kernel of the queries' gradients writes it for the others

  __device__ std::int64_t at(std::int64_t stream, int head, int query, int heads, int block) const {
    return (stream * heads + head) * block + query;
  }
  /// To base 2; +infinity, which makes all weights 0, for a query that sees nothing or does not exist.
  __device__ float base_of(std::int64_t place, bool exists) const {
    const float natural = exists ? lse[place] : -INFINITY;
    return natural == -INFINITY ? INFINITY : kLog2OfE * natural;
  }
};

/// mask exp(score - lse) of a place, `exponent` being score - lse in base 2; 0 where a key is not seen.
__device__ __forceinline__ float weight_of(const Band& band, int distance, bool exists, float exponent) {
  if (!exists || distance < band.nearest || distance > band.visible) return 0;
  return distance <= band.full ? power_of_two(exponent) : band.mask(distance) * power_of_two(exponent);
}

/// A tile of queries that the other kernels meet: rows, and two numbers for each.
template <class T, int kDepth>
struct QueryTile {
  bf16 *content, *position, *dout;
  float *base, *total;

  static std::size_t bytes(bool two_queries) {
    return (two_queries ? 3 : 2) * kTileBytes<kDepth> + 2 * kTileRows * sizeof(float);
  }
  __device__ QueryTile(SharedPieces& shared, bool two_queries) {
    content = position = shared.take<bf16>(kTileBytes<kDepth>);
    if (two_queries) position = shared.take<bf16>(kTileBytes<kDepth>);
    dout = shared.take<bf16>(kTileBytes<kDepth>);
    base = shared.take<float>(kTileRows * sizeof(float));
    total = shared.take<float>(kTileRows * sizeof(float));
  }
  /// From query `first` on; all threads of the block call, between two barriers.
  __device__ __forceinline__ void load(const FusedCall<T>& call, const QueryNumbers& numbers, const T* of_out,
                                       const Place& place, int first) const {
    load_tile<kDepth>(content, first, [&](int q) { return call.query_row(call.content_query, place, q); });
    if (position != content)
      load_tile<kDepth>(position, first, [&](int q) { return call.query_row(call.position_query, place, q); });
    load_tile<kDepth>(dout, first, [&](int q) { return call.query_row(of_out, place, q); });
    for (int row = static_cast<int>(threadIdx.x); row < kTileRows; row += kAttentionThreads) {
      const bool exists = first + row < call.block;
      const std::int64_t at = numbers.at(place.stream, place.head, first + row, call.heads, call.block);
      base[row] = numbers.base_of(at, exists);
      total[row] = exists ? numbers.total[at] : 0.0f;
    }
  }
};

/// Shared memory of the kernels over queries and over keys.
template <class T, int kDepth>
struct GradientMemory {
  QueryTile<T, kDepth> tile;
  bf16 *keys, *values;           // or slots
  bf16* positions = nullptr;     // a ring of position keys
  float* by_distance = nullptr;  // a ring of scores of this warp
  std::uint8_t* bits;            // of this warp

  __device__ GradientMemory(SharedPieces& shared, bool two_queries, bool with_positions) : tile(shared, two_queries) {
    keys = shared.take<bf16>(kTileBytes<kDepth>);
    values = shared.take<bf16>(kTileBytes<kDepth>);
    bits = shared.of_warp<std::uint8_t>(KeepBits<16>::kBytes);
    if (!with_positions) return;
    positions = shared.take<bf16>(2 * kTileBytes<kDepth>);
    by_distance = shared.of_warp<float>(kRingBytes);
  }
  static std::size_t bytes(bool two_queries, bool with_positions) {
    return QueryTile<T, kDepth>::bytes(two_queries) + 2 * kTileBytes<kDepth> + kTileWarps * KeepBits<16>::kBytes +
           (with_positions ? 2 * kTileBytes<kDepth> + kTileWarps * kRingBytes : 0);
  }
};

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
