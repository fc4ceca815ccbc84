#pragma once
/// Fused attention, backward: gradients of a tile of position keys. A warp has 16 distances and meets 16 queries at a
/// time, with scores as [distance, query]. The keys of such a block are 31 neighbours, so products with keys and values
/// go through a ring by position, as scores by distance do elsewhere.

#include "cuda/attention/fused_attention_gradients.cuh"
#include "cuda/attention/fused_attention_partials.cuh"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

template <class T, int kDepth>
struct PositionGradientMemory {
  QueryTile<T, kDepth> tile;
  bf16 *positions, *keys, *values;
  float *scores, *dweights;  // by position, of this warp
  std::uint8_t* bits;        // of this warp

  __device__ PositionGradientMemory(SharedPieces& shared, bool two_queries) : tile(shared, two_queries) {
    positions = shared.take<bf16>(kTileBytes<kDepth>);
    keys = shared.take<bf16>(2 * kTileBytes<kDepth>);
    values = shared.take<bf16>(2 * kTileBytes<kDepth>);
    scores = shared.of_warp<float>(kRingBytes);
    dweights = shared.of_warp<float>(kRingBytes);
    bits = shared.of_warp<std::uint8_t>(KeepBits<16>::kBytes);
  }
  static std::size_t bytes(bool two_queries) {
    return QueryTile<T, kDepth>::bytes(two_queries) + 5 * kTileBytes<kDepth> +
           kTileWarps * (2 * kRingBytes + KeepBits<16>::kBytes);
  }
};

/// One item for every head, share of the queries and tile of distances, counted from 0.
template <class T, int kDepth>
__global__ void __launch_bounds__(kAttentionThreads, kResidentBlocks<kDepth>)
    position_gradients(FusedCall<T> call, HeadItems items, const T* dout, QueryNumbers numbers, Partials to) {
  constexpr int kStride = kTileStride<kDepth>;
  const int rank = items.rank_of(static_cast<int>(blockIdx.x));
  const int item = static_cast<int>(blockIdx.x) - items.first[rank];
  const int shares = to.shares[rank], tiles = (items.first[rank + 1] - items.first[rank]) / shares;
  const int share = item / tiles, distance0 = item % tiles * kTileRows, own = distance0 + 16 * warp_of_block();
  Place place = call.place(rank, 0);
  const Band band(call, place);
  SharedPieces shared;
  const PositionGradientMemory<T, kDepth> memory(shared, call.two_queries);
  const QueryTile<T, kDepth>& tile = memory.tile;

  load_tile<kDepth>(memory.positions, distance0, [&](int distance) { return call.position_row(place, distance); });
  __syncthreads();
  const LeftRows<kDepth> positions(memory.positions + 16 * warp_of_block() * kStride);
  const KeepBits<16> keep(memory.bits, call);
  RowSums<kDepth> dpositions;

  const QueryShare queries(share, shares, call.streams * call.tiles);
  std::int64_t loaded = -1;  // number of the tile whose keys are in the ring
  for (std::int64_t number = queries.begin; distance0 <= band.visible && number < queries.end; ++number) {
    place = call.place(rank, number / call.tiles);
    const int query0 = static_cast<int>(number % call.tiles) * kTileRows, key0 = query0 - distance0;
    if (key0 + kTileRows <= place.oldest) continue;  // none of the keys exists
    __syncthreads();
    tile.load(call, numbers, dout, place, query0);
    const bool next = loaded >= 0 && loaded + 1 == number && query0 > 0;
    const int first = next ? key0 : key0 - kTileRows, count = next ? kTileRows : kRingRows;
    load_rows<kDepth, kRingRows>(memory.keys, first, count,
                                 [&](int c) { return call.context_row(call.past_keys, call.keys, place, c); });
    load_rows<kDepth, kRingRows>(memory.values, first, count,
                                 [&](int c) { return call.context_row(call.past_values, call.values, place, c); });
    loaded = number;
    __syncthreads();
    for (int step = 0; step < kTileRows; step += 16) {
      const int query = query0 + step, apart = query - own;  // position of the diagonal
      if (query >= call.block || own > band.visible || own + 15 < band.nearest || apart + 15 < place.oldest) continue;
      const LeftRows<kDepth> content(tile.content + step * kStride), outs(tile.dout + step * kStride);
      __syncwarp();
      put_products(memory.scores, apart - 16, content, memory.keys);
      put_products(memory.scores, apart, content, memory.keys);
      put_products(memory.dweights, apart - 16, outs, memory.values);
      put_products(memory.dweights, apart, outs, memory.values);
      __syncwarp();
      const bf16* const position_queries = tile.position + step * kStride;
      const Sums scores = positions.times(position_queries);
      // Places run from the farthest distance to the nearest one.
      const auto element_of = [&](int row) { return call.dropout_element(place, query + row, query + row - own - 15); };
      keep.draw(element_of);
      const unsigned kept = keep.kept(element_of, Sums::column_of, [](int e) { return 15 - Sums::row_of(e); });
      Sums dscores;
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const int row = Sums::row_of(e), column = Sums::column_of(e), position = apart + column - row;
        const float score = scores.value[e] + ring_value(memory.scores, column, position);
        const float exponent = call.score_scale * kLog2OfE * score - tile.base[step + column];
        const float multiplier = keep.multiplier(kept, e);
        const float excess = multiplier * ring_value(memory.dweights, column, position) - tile.total[step + column];
        dscores.value[e] = weight_of(band, own + row, position >= place.oldest, exponent) * excess;
      }
      dpositions.add(fragment(dscores), position_queries);
    }
  }
  dpositions.write([&](int row) { return to.row(rank, share, own + row - call.nearest, kDepth); },
                   [&](int) { return call.score_scale; }, Write::set);
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
