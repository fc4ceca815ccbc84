#pragma once
/// Fused attention, backward: gradients of a tile of position keys. A warp has 16 distances and meets 16 queries at a
/// time, with scores as [distance, query]. The keys of such a block are 31 neighbours, so products with keys and values
/// go through a table by position, as scores by distance do elsewhere.

#include "cuda/attention/fused_attention_gradients.cuh"
#include "cuda/attention/fused_attention_partials.cuh"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// Scores, or gradients of weights, of a block of 16 distances and 16 queries by position: rows are queries.
using QueryPositions = Diagonals<32>;

template <class T, int kDepth>
struct PositionGradientMemory {
  // With heads of 64, scores of all warps fit where the position keys were before they were held in registers: so three
  // blocks share a multiprocessor, unless positions have queries of their own.
  static constexpr bool kReused = kDepth == 64;
  static_assert(!kReused || kTileWarps * QueryPositions::kBytes <= kTileBytes<kDepth>);

  QueryTile<T, kDepth> tile;
  bf16 *positions, *keys, *values;
  float *scores, *dweights;  // of this warp
  std::uint32_t* bits;

  __device__ PositionGradientMemory(SharedPieces& shared, bool two_queries) : tile(shared) {
    if constexpr (kReused) {
      SharedPieces again = shared;
      scores = again.of_warp<float>(QueryPositions::kBytes);
    }
    positions = shared.take<bf16>(kTileBytes<kDepth>);
    keys = shared.take<bf16>(2 * kTileBytes<kDepth>);
    values = shared.take<bf16>(2 * kTileBytes<kDepth>);
    if constexpr (!kReused) scores = shared.of_warp<float>(QueryPositions::kBytes);
    dweights = shared.of_warp<float>(QueryPositions::kBytes);
    tile.take_numbers(shared);
    bits = shared.take<std::uint32_t>(KeepBits::kBytes);
    if (two_queries) tile.take_second_query(shared);
  }
  static std::size_t bytes(bool two_queries) {
    return QueryTile<T, kDepth>::bytes(two_queries) + 5 * kTileBytes<kDepth> + KeepBits::kBytes +
           (kReused ? 1 : 2) * kTileWarps * QueryPositions::kBytes;
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
  const Band band(call, call.place(rank, 0));
  SharedPieces shared;
  const PositionGradientMemory<T, kDepth> memory(shared, call.two_queries);
  const QueryTile<T, kDepth>& tile = memory.tile;

  load_tile<kDepth>(memory.positions, call.position_rows(call.place(rank, 0)), distance0 - call.nearest);
  finish_tiles<T>();
  __syncthreads();
  const LeftRows<kDepth> positions(memory.positions + 16 * warp_of_block() * kStride);
  const KeepBits keep(memory.bits, call);
  const QueryPositions by_position(memory.scores), dweights(memory.dweights);
  const float scale = call.score_scale * kLog2OfE;
  RowSums<kDepth> dpositions;

  bool fresh = true;  // the ring does not hold the keys before those of the tile
  QueryTiles queries(call, rank, share, shares);
  for (; distance0 <= band.visible && queries.any(); queries.advance(call, rank)) {
    const Place& place = queries.place();
    const int query0 = queries.first_query(), key0 = query0 - distance0;
    if (query0 == 0) fresh = true;
    if (key0 + kTileRows <= place.oldest) continue;  // none of the keys exists
    const ContextRows<T, kDepth> rows(call, place);
    __syncthreads();
    tile.template load<TileLayout::rows>(call, numbers, dout, place, query0, 1 / call.dropout_multiplier);
    if (fresh) load_context<kDepth, TileLayout::ring>(call, place, rows, key0 - kTileRows, memory.keys, memory.values);
    load_context<kDepth, TileLayout::ring>(call, place, rows, key0, memory.keys, memory.values);
    fresh = false;
    // The first place of a row is that of the farthest distance.
    keep.template draw<false>(call, call.dropout_row(place, query0 + KeepBits::drawn_query()) +
                                        static_cast<std::uint64_t>(std::int64_t{call.longest} - distance0 - 63));
    finish_tiles<T>();
    __syncthreads();
#pragma unroll 1
    for (int step = 0; step < kTileRows; step += 16) {
      const int query = query0 + step, apart = query - own;  // position of the diagonal
      if (query >= call.block || own > band.visible || own + 15 < band.nearest || apart + 15 < place.oldest) continue;
      {
        const LeftRows<kDepth, false> content(tile.content + step * kStride), outs(tile.dout + step * kStride);
        __syncwarp();
        by_position.put(0, content.times(ring_rows<kDepth>(memory.keys, apart - 16)));
        by_position.put(16, content.times(ring_rows<kDepth>(memory.keys, apart)));
        dweights.put(0, outs.times(ring_rows<kDepth>(memory.values, apart - 16)));
        dweights.put(16, outs.times(ring_rows<kDepth>(memory.values, apart)));
        __syncwarp();
      }
      const bf16* const position_queries = tile.position + step * kStride;
      const ColumnNumbers base(tile.base + step), total(tile.total + step);
      const KeptColumns<true> kept = keep.columns<true>(step);
      Sums scores = positions.times(position_queries);
#pragma unroll
      for (int e = 0; e < 8; ++e) scores.value[e] = scale * (scores.value[e] + by_position.of_columns(e)) - base[e];
      if (own < band.nearest || own + 15 > band.full || apart - 15 < place.oldest) {
#pragma unroll
        for (int e = 0; e < 8; ++e) {
          const int row = Sums::row_of(e);
          scores.value[e] =
              weight_of(band, own + row, apart + Sums::column_of(e) - row >= place.oldest, scores.value[e]);
        }
      } else {
#pragma unroll
        for (int e = 0; e < 8; ++e) scores.value[e] = power_of_two(scores.value[e]);
      }
      Sums dscores;
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const float dweight = dweights.of_columns(e);
        dscores.value[e] = scores.value[e] * ((kept.keeps(e) ? dweight : 0.0f) - total[e]);
      }
      dpositions.add(fragment(dscores), position_queries);
    }
  }
  dpositions.write([&](int row) { return to.row(rank, share, own + row - call.nearest, kDepth); },
                   [&](int) { return call.score_scale * call.dropout_multiplier; }, Write::set);
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
