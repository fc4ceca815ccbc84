#pragma once
/// Fused attention, backward: gradients of a tile of keys and values, and of a tile of persistent slots. A warp has 16
/// rows of them and meets 16 queries at a time, with scores as [key, query]: so weights and gradients of scores are the
/// left operands of the products with the queries' rows as they come.

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

template <class T, int kDepth>
__global__ void __launch_bounds__(kAttentionThreads, kResidentBlocks<kDepth>)
    key_gradients(FusedCall<T> call, HeadItems items, const T* dout, QueryNumbers numbers, KeyGradients<T> wanted) {
  constexpr int kStride = kTileStride<kDepth>;
  const int rank = items.rank_of(static_cast<int>(blockIdx.x));
  const int item = static_cast<int>(blockIdx.x) - items.first[rank];
  const int tiles = (items.first[rank + 1] - items.first[rank]) / static_cast<int>(call.streams);
  const Place place = call.place(rank, item / tiles);
  const Band band(call, place);
  const int key0 = first_key(place.window) + item % tiles * kTileRows, own = key0 + 16 * warp_of_block();
  SharedPieces shared;
  const GradientMemory<T, kDepth> memory(shared, call.two_queries, call.positions);
  const QueryTile<T, kDepth>& tile = memory.tile;

  load_context<kDepth>(call, place, key0, memory.keys, memory.values);
  __syncthreads();
  const LeftRows<kDepth> keys(memory.keys + 16 * warp_of_block() * kStride);
  const LeftRows<kDepth> values(memory.values + 16 * warp_of_block() * kStride);
  const KeepBits<16> keep(memory.bits, call);
  RowSums<kDepth> dkeys, dvalues;

  const int begin = key0 + band.nearest > 0 ? floor16(key0 + band.nearest) : 0;
  int end = key0 + kTileRows + band.visible < call.block ? key0 + kTileRows + band.visible : call.block;
  if (key0 + kTileRows <= place.oldest) end = begin;  // none of the keys exists
  for (int query0 = begin; query0 < end; query0 += kTileRows) {
    __syncthreads();
    tile.load(call, numbers, dout, place, query0);
    if (call.positions) {
      const bool fresh = query0 == begin;
      load_distances<kDepth>(call, place, query0 - key0 - (fresh ? kTileRows : 0), fresh ? kRingRows : kTileRows,
                             memory.positions);
    }
    __syncthreads();
    for (int step = 0; step < kTileRows; step += 16) {
      const int query = query0 + step, apart = query - own;  // distance of the diagonal
      if (query >= call.block || apart + 15 < band.nearest || apart - 15 > band.visible || own + 15 < place.oldest)
        continue;
      const bf16 *const content = tile.content + step * kStride, *const outs = tile.dout + step * kStride;
      const Sums scores = keys.times(content), dweights = values.times(outs);
      const auto element_of = [&](int row) { return call.dropout_element(place, query + row, own); };
      keep.draw(element_of);
      const unsigned kept = keep.kept(element_of, Sums::column_of, Sums::row_of);
      if (call.positions) {
        const LeftRows<kDepth, false> queries(tile.position + step * kStride);
        __syncwarp();
        put_products(memory.by_distance, apart - 16, queries, memory.positions);
        put_products(memory.by_distance, apart, queries, memory.positions);
        __syncwarp();
      }
      const bool masked = apart - 15 < band.nearest || apart + 15 > band.full || own < place.oldest;
      Sums weights, dscores;
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const int row = Sums::row_of(e), column = Sums::column_of(e), distance = apart + column - row;
        float score = scores.value[e];
        if (call.positions) score += ring_value(memory.by_distance, column, distance);
        const float exponent = call.score_scale * kLog2OfE * score - tile.base[step + column];
        const float multiplier = keep.multiplier(kept, e);
        const float weight =
            masked ? weight_of(band, distance, own + row >= place.oldest, exponent) : power_of_two(exponent);
        weights.value[e] = weight * multiplier;
        dscores.value[e] = weight * (multiplier * dweights.value[e] - tile.total[step + column]);
      }
      dvalues.add(fragment(weights), outs);
      dkeys.add(fragment(dscores), content);
    }
  }

  T* const none = nullptr;
  const auto one = [](int) { return 1.0f; };
  const auto score_scale = [&](int) { return call.score_scale; };
  const auto past = [&](T* to) { return [&, to](int row) { return call.context_row(to, none, place, own + row); }; };
  const auto here = [&](T* to) { return [&, to](int row) { return call.context_row(none, to, place, own + row); }; };
  dkeys.write(past(wanted.past_keys.data), score_scale, wanted.past_keys.write);
  dkeys.write(here(wanted.keys.data), score_scale, wanted.keys.write);
  dvalues.write(past(wanted.past_values.data), one, wanted.past_values.write);
  dvalues.write(here(wanted.values.data), one, wanted.values.write);
}

/// One item for every head, tile of slots and share of the queries.
template <class T, int kDepth>
__global__ void __launch_bounds__(kAttentionThreads, kResidentBlocks<kDepth>)
    slot_gradients(FusedCall<T> call, const T* dout, QueryNumbers numbers, Partials dkeys_to, Partials dvalues_to) {
  constexpr int kStride = kTileStride<kDepth>;
  const int shares = dkeys_to.shares[0], tiles = (call.persistent + kTileRows - 1) / kTileRows;
  const int rank = static_cast<int>(blockIdx.x) / tiles / shares, share = static_cast<int>(blockIdx.x) / tiles % shares;
  const int slot0 = static_cast<int>(blockIdx.x) % tiles * kTileRows, own = slot0 + 16 * warp_of_block();
  const int head = call.table.head[rank];
  SharedPieces shared;
  const GradientMemory<T, kDepth> memory(shared, false, false);
  const QueryTile<T, kDepth>& tile = memory.tile;

  load_slots<kDepth>(call, head, slot0, memory.keys, memory.values);
  __syncthreads();
  const LeftRows<kDepth> keys(memory.keys + 16 * warp_of_block() * kStride);
  const LeftRows<kDepth> values(memory.values + 16 * warp_of_block() * kStride);
  const KeepBits<16> keep(memory.bits, call);
  RowSums<kDepth> dkeys, dvalues;

  const QueryShare queries(share, shares, call.streams * call.tiles);
  for (std::int64_t number = queries.begin; number < queries.end; ++number) {
    const Place place = call.place(rank, number / call.tiles);
    const int query0 = static_cast<int>(number % call.tiles) * kTileRows;
    __syncthreads();
    tile.load(call, numbers, dout, place, query0);
    __syncthreads();
    for (int step = 0; step < kTileRows; step += 16) {
      if (query0 + step >= call.block || own >= call.persistent) continue;
      const bf16 *const content = tile.content + step * kStride, *const outs = tile.dout + step * kStride;
      const Sums scores = keys.times(content), dweights = values.times(outs);
      const auto element_of = [&](int row) {
        return call.dropout_row(place, query0 + step + row) + static_cast<std::uint64_t>(call.dropout_reach + own);
      };
      keep.draw(element_of);
      const unsigned kept = keep.kept(element_of, Sums::column_of, Sums::row_of);
      Sums weights, dscores;
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const int column = Sums::column_of(e);
        const float exponent = call.slot_score_scale * kLog2OfE * scores.value[e] - tile.base[step + column];
        const float multiplier = keep.multiplier(kept, e);
        const float weight = power_of_two(exponent);
        weights.value[e] = weight * multiplier;
        dscores.value[e] =
            weight * (multiplier * call.slot_value_scale * dweights.value[e] - tile.total[step + column]);
      }
      dvalues.add(fragment(weights), outs);
      dkeys.add(fragment(dscores), content);
    }
  }
  // Sums of rows behind the last slot have no place there.
  dkeys.write([&](int row) { return dkeys_to.row(rank, share, own + row, kDepth); },
              [&](int) { return call.slot_score_scale; }, Write::set);
  dvalues.write([&](int row) { return dvalues_to.row(rank, share, own + row, kDepth); },
                [&](int) { return call.slot_value_scale; }, Write::set);
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
