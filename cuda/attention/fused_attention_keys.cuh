#pragma once
/// Fused attention, backward: gradients of a tile of keys and values. A warp has 16 rows of them and meets 16 queries
/// at a time, with scores as [key, query]: so weights and gradients of scores are the left operands of the products
/// with the queries' rows as they come.

#include "cuda/attention/fused_attention_gradients.cuh"
#include "cuda/attention/fused_attention_partials.cuh"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// What the kernel over keys writes.
template <class T>
struct KeyGradients {
  TargetElements<T> past_keys, past_values, keys, values;
};

/// First position of the first tile of keys of a head.
__host__ __device__ constexpr int first_key(int window) { return -((window + 15) / 16 * 16); }

/// Of 16 keys and 16 queries: weights after dropout, and gradients of scores, without what kept weights are multiplied
/// by. weights: before dropout; total: divided by that multiplier.
__device__ __forceinline__ void weigh_key_gradients(const Sums& weights, const Sums& dweights,
                                                    const KeptColumns<false>& kept, const ColumnNumbers& total,
                                                    Fragment& kept_weights, Fragment& dscores) {
  Sums of_kept, of_scores;
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    of_kept.value[e] = kept.keeps(e) ? weights.value[e] : 0.0f;
    of_scores.value[e] = of_kept.value[e] * dweights.value[e] - weights.value[e] * total[e];
  }
  kept_weights = fragment(of_kept);
  dscores = fragment(of_scores);
}
/// Adds what 16 queries give to 16 keys and their values.
template <bool kByWarpgroup, int kDepth>
__device__ __forceinline__ void add_key_gradients(const Sums& weights, const Sums& dweights,
                                                  const KeptColumns<false>& kept, const ColumnNumbers& total,
                                                  const bf16* content, const bf16* outs, RowSums<kDepth>& dkeys,
                                                  RowSums<kDepth>& dvalues) {
  Fragment kept_weights, dscores;
  weigh_key_gradients(weights, dweights, kept, total, kept_weights, dscores);
  dvalues.template add_block<kByWarpgroup>(kept_weights, outs);
  dkeys.template add_block<kByWarpgroup>(dscores, content);
}

/// Scores of a block of 16 keys and 16 queries by distance: rows are queries.
using QueryDistances = Diagonals<32>;

template <class T, int kDepth>
std::size_t key_gradient_bytes(const FusedCall<T>& call) {
  return GradientMemory<T, kDepth>::bytes(call.two_queries, call.positions) +
         (call.positions ? kTileWarps * QueryDistances::kBytes : 0);
}

/// kByWarpgroup: products with keys and values are a warpgroup's, of which all warps then meet every block of queries
/// that one of them is seen by.
template <class T, int kDepth, bool kByWarpgroup>
__global__ void __launch_bounds__(kAttentionThreads, kResidentBlocks<kDepth>)
    key_gradients(FusedCall<T> call, HeadItems items, const T* dout, QueryNumbers numbers, KeyGradients<T> wanted) {
  constexpr int kStride = kTileStride<kDepth>;
  const int rank = items.rank_of(static_cast<int>(blockIdx.x));
  const int item = static_cast<int>(blockIdx.x) - items.first[rank];
  const int tiles = (items.first[rank + 1] - items.first[rank]) / call.streams;
  const Place place = call.place(rank, item / tiles);
  const Band band(call, place);
  const int key0 = first_key(place.window) + item % tiles * kTileRows, own = key0 + 16 * warp_of_block();
  SharedPieces shared = shared_pieces<kByWarpgroup>();
  const GradientMemory<T, kDepth> memory(shared, call.two_queries, call.positions);
  const QueryTile<T, kDepth>& tile = memory.tile;
  const QueryDistances by_distance(call.positions ? shared.of_warp<float>(QueryDistances::kBytes) : nullptr);

  load_context<kDepth, TileLayout::rows>(call, place, ContextRows<T, kDepth>(call, place), key0, memory.keys,
                                         memory.values);
  finish_tiles<T>();
  __syncthreads();
  const LeftRows<kDepth> keys(memory.keys + 16 * warp_of_block() * kStride);
  const LeftRows<kDepth, false> values(memory.values + 16 * warp_of_block() * kStride);
  const KeepBits keep(memory.bits, call);
  const float scale = call.score_scale * kLog2OfE;
  const float total_scale = 1 / call.dropout_multiplier;
  RowSums<kDepth> dkeys, dvalues;

  const int begin = key0 + band.nearest > 0 ? floor16(key0 + band.nearest) : 0;
  int end = key0 + kTileRows + band.visible < call.block ? key0 + kTileRows + band.visible : call.block;
  if (key0 + kTileRows <= place.oldest) end = begin;  // none of the keys exists
  if (call.positions && begin < end) load_distances<kDepth>(call, place, begin - key0 - kTileRows, memory.positions);
  const auto put_distances = [&](const auto& queries, int apart) {
    __syncwarp();
    by_distance.put(0, queries.times(ring_rows<kDepth>(memory.positions, apart - 16)));
    by_distance.put(16, queries.times(ring_rows<kDepth>(memory.positions, apart)));
    __syncwarp();
  };
  for (int query0 = begin; query0 < end; query0 += kTileRows) {
    __syncthreads();
    tile.template load<kOperandLayout<kByWarpgroup>>(call, numbers, dout, place, query0, total_scale);
    if (call.positions) load_distances<kDepth>(call, place, query0 - key0, memory.positions);
    keep.template draw<false>(call, call.dropout_element(place, query0 + KeepBits::drawn_query(), key0));
    finish_tiles<T, kByWarpgroup>();
    __syncthreads();
#pragma unroll 1
    for (int step = 0; step < kTileRows; step += 16) {
      const int query = query0 + step, apart = query - own;  // distance of the diagonal
      const bool seen = apart + 15 >= band.nearest && apart - 15 <= band.visible && own + 15 >= place.oldest;
      if (query >= call.block || (!kByWarpgroup && !seen)) continue;
      constexpr int kRow = kOperandStride<kDepth, kByWarpgroup>;
      const bf16 *const content = tile.content + step * kRow, *const outs = tile.dout + step * kRow;
      if (call.positions && seen) {
        // Content queries serve here too, or others, which lie in rows.
        if (kByWarpgroup && !call.two_queries)
          put_distances(LeftRows<kDepth, false, kOperandLayout<kByWarpgroup>>(content), apart);
        else
          put_distances(LeftRows<kDepth, false>(tile.position + step * kStride), apart);
      }
      Sums scores = keys.template times_block<kByWarpgroup>(content);
      if (call.positions) {
#pragma unroll
        for (int e = 0; e < 8; ++e) scores.value[e] += by_distance.of_columns(e);
      }
      const ColumnNumbers base(tile.base + step);
      if (apart - 15 < band.nearest || apart + 15 > band.full || own < place.oldest) {  // so where it is not seen
#pragma unroll
        for (int e = 0; e < 8; ++e) {
          const int row = Sums::row_of(e);
          scores.value[e] = weight_of(band, apart + Sums::column_of(e) - row, own + row >= place.oldest,
                                      scale * scores.value[e] - base[e]);
        }
      } else {
#pragma unroll
        for (int e = 0; e < 8; ++e) scores.value[e] = power_of_two(scale * scores.value[e] - base[e]);
      }
      // Of a block that is not seen all weights are 0.
      add_key_gradients<kByWarpgroup>(scores, values.template times_block<kByWarpgroup>(outs), keep.columns(step),
                                      ColumnNumbers(tile.total + step), content, outs, dkeys, dvalues);
    }
  }

  T* const none = nullptr;
  const auto score_scale = [&](int) { return call.score_scale * call.dropout_multiplier; };
  const auto multiplier = [&](int) { return call.dropout_multiplier; };
  const auto past = [&](T* to) { return [&, to](int row) { return call.context_row(to, none, place, own + row); }; };
  const auto here = [&](T* to) { return [&, to](int row) { return call.context_row(none, to, place, own + row); }; };
  dkeys.write(past(wanted.past_keys.data), score_scale, wanted.past_keys.write);
  dkeys.write(here(wanted.keys.data), score_scale, wanted.keys.write);
  dvalues.write(past(wanted.past_values.data), multiplier, wanted.past_values.write);
  dvalues.write(here(wanted.values.data), multiplier, wanted.values.write);
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
