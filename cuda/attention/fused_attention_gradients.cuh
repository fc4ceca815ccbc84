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

  /// Of the query with a number (FusedCall). To base 2; +infinity, which makes all weights 0, for one that sees nothing
  /// or does not exist.
  __device__ float base_of(int number, bool exists) const {
    const float natural = exists ? lse[number] : -INFINITY;
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
  bf16 *content, *dout, *position;
  float *base = nullptr, *total = nullptr;

  static std::size_t bytes(bool two_queries) {
    return (two_queries ? 3 : 2) * kTileBytes<kDepth> + 2 * kTileRows * sizeof(float);
  }
  /// first: where the content queries are to lie; nullptr: anywhere.
  __device__ explicit QueryTile(SharedPieces& shared, bf16* first = nullptr) {
    content = position = first != nullptr ? first : shared.take<bf16>(kTileBytes<kDepth>);
    dout = shared.take<bf16>(kTileBytes<kDepth>);
  }
  /// After the tiles, all of which are aligned alike so.
  __device__ void take_numbers(SharedPieces& shared) {
    base = shared.take<float>(kTileRows * sizeof(float));
    total = shared.take<float>(kTileRows * sizeof(float));
  }
  /// After all other pieces, so that these lie where the compiler knows.
  __device__ void take_second_query(SharedPieces& shared) { position = shared.take<bf16>(kTileBytes<kDepth>); }
  /// From query `first` on, totals multiplied by total_scale; all threads of the block call, between two barriers;
  /// finish_tiles() is to follow.
  /// kLayout: of content queries and dout.
  template <TileLayout kLayout>
  __device__ __forceinline__ void load(const FusedCall<T>& call, const QueryNumbers& numbers, const T* of_out,
                                       const Place& place, int first, float total_scale) const {
    using Share = TileShare<T, kDepth, kLayout>;
    const auto load_rows = [&](Share* of_content, Share* of_dout) {
      if (of_content != nullptr) of_content->load(call.query_rows(call.content_query, place), first);
      if (of_dout != nullptr) of_dout->load(call.query_rows(of_out, place), first);
    };
    load_both<Share>(load_rows, content, dout);
    if (position != content) load_tile<kDepth>(position, call.query_rows(call.position_query, place), first);
    const int row = static_cast<int>(threadIdx.x) % kTileRows, number = call.query_number(place, first + row);
    const bool exists = first + row < call.block;
    if (threadIdx.x < kTileRows)
      base[row] = numbers.base_of(number, exists);
    else
      total[row] = exists ? total_scale * numbers.total[number] : 0.0f;
  }
};

/// Of a lane's four columns of a 16x16 block of queries: columns 2 t, 2 t + 1, 2 t + 8 and 2 t + 9.
struct ColumnNumbers {
  Pack<float, 2> half[2];

  __device__ explicit ColumnNumbers(const float* numbers)
      : half{load<2>(numbers + Sums::column_of(0)), load<2>(numbers + Sums::column_of(4))} {}
  /// Of element e.
  __device__ __forceinline__ float operator[](int e) const { return half[e / 4].value[e % 2]; }
};

/// Shared memory of the kernels over queries and over keys.
template <class T, int kDepth>
struct GradientMemory {
  QueryTile<T, kDepth> tile;
  bf16 *keys, *values;        // or slots
  bf16* positions = nullptr;  // a ring of position keys
  std::uint32_t* bits;

  __device__ GradientMemory(SharedPieces& shared, bool two_queries, bool with_positions, bf16* first = nullptr)
      : tile(shared, first) {
    keys = shared.take<bf16>(kTileBytes<kDepth>);
    values = shared.take<bf16>(kTileBytes<kDepth>);
    tile.take_numbers(shared);
    bits = shared.take<std::uint32_t>(KeepBits::kBytes);
    if (with_positions) positions = shared.take<bf16>(2 * kTileBytes<kDepth>);
    if (two_queries) tile.take_second_query(shared);
  }
  static std::size_t bytes(bool two_queries, bool with_positions) {
    return QueryTile<T, kDepth>::bytes(two_queries) + 2 * kTileBytes<kDepth> + KeepBits::kBytes +
           (with_positions ? 2 * kTileBytes<kDepth> : 0);
  }
};

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
