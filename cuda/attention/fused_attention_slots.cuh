#pragma once
/// Fused attention, backward: gradients of persistent slots, by the same products as those of keys
/// (cuda/attention/fused_attention_keys.cuh), without positions and masks.

#include "cuda/attention/fused_attention_keys.cuh"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// What a block works on: so many slots of a head, and a share of the queries.
struct SlotItem {
  int rank, head, share, shares, slot0;

  template <class T>
  __device__ __forceinline__ SlotItem(const FusedCall<T>& call, const Partials& to, int slots) : shares(to.shares[0]) {
    const int number = static_cast<int>(blockIdx.x), tiles = (call.persistent + slots - 1) / slots;
    rank = number / tiles / shares;
    head = call.table.head[rank];
    share = number / tiles % shares;
    slot0 = number % tiles * slots;
  }
};

/// One item for every head, tile of slots and share of the queries. kByWarpgroup: products are a warpgroup's, 32
/// queries at a time.
template <class T, int kDepth, bool kByWarpgroup>
__global__ void __launch_bounds__(kAttentionThreads, kResidentBlocks<kDepth>)
    slot_gradients(FusedCall<T> call, const T* dout, QueryNumbers numbers, Partials dkeys_to, Partials dvalues_to) {
  constexpr int kStride = kTileStride<kDepth>;
  const SlotItem item(call, dkeys_to, kTileRows);
  const int rank = item.rank, share = item.share, slot0 = item.slot0, own = slot0 + 16 * warp_of_block();
  SharedPieces shared = shared_pieces<kByWarpgroup>();
  const GradientMemory<T, kDepth> memory(shared, false, false);
  const QueryTile<T, kDepth>& tile = memory.tile;

  load_slots<kDepth, TileLayout::rows>(call, item.head, slot0, memory.keys, memory.values);
  finish_tiles<T>();
  __syncthreads();
  const LeftRows<kDepth> keys(memory.keys + 16 * warp_of_block() * kStride);
  // With tensors of f32 registers are short: read again for every product.
  const LeftRows<kDepth, (kDepth <= 64 && sizeof(T) == sizeof(bf16))> values(memory.values +
                                                                             16 * warp_of_block() * kStride);
  const KeepBits keep(memory.bits, call);
  const float scale = call.slot_score_scale * kLog2OfE, value_scale = call.dropout_multiplier * call.slot_value_scale;
  RowSums<kDepth> dkeys, dvalues;

  for (QueryTiles queries(call, rank, share, item.shares); queries.any(); queries.advance(call, rank)) {
    const Place& place = queries.place();
    const int query0 = queries.first_query();
    __syncthreads();
    tile.template load<kOperandLayout<kByWarpgroup>>(call, numbers, dout, place, query0, 1 / value_scale);
    keep.template draw<true>(call, call.dropout_row(place, query0 + KeepBits::drawn_query()) +
                                       static_cast<std::uint64_t>(call.dropout_reach + slot0));
    finish_tiles<T, kByWarpgroup>();
    __syncthreads();
    const auto weigh = [&](Sums& scores, int step) {
      const ColumnNumbers base(tile.base + step);
#pragma unroll
      for (int e = 0; e < 8; ++e) scores.value[e] = power_of_two(scale * scores.value[e] - base[e]);
    };
    if constexpr (kByWarpgroup) {
      constexpr int kTogether = 2;  // blocks of 16 queries
#pragma unroll 1
      for (int step = 0; step < kTileRows; step += 16 * kTogether) {
        if (query0 + step >= call.block) continue;
        const bf16* const content = tile.content + step * kOperandColumns;
        const bf16* const outs = tile.dout + step * kOperandColumns;
        Sums scores[kTogether], dweights[kTogether];
        Fragment kept_weights[kTogether], dscores[kTogether];
        keys.times_operand(scores, content);
        values.times_operand(dweights, outs);
#pragma unroll
        for (int b = 0; b < kTogether; ++b) {
          const int query = step + 16 * b;
          weigh(scores[b], query);
          weigh_key_gradients(scores[b], dweights[b], keep.columns(query), ColumnNumbers(tile.total + query),
                              kept_weights[b], dscores[b]);
        }
        multiply_add_rows(dvalues.part, kept_weights, outs);
        multiply_add_rows(dkeys.part, dscores, content);
      }
    } else {
#pragma unroll 1
      for (int step = 0; step < kTileRows; step += 16) {
        if (query0 + step >= call.block || own >= call.persistent) continue;
        const bf16 *const content = tile.content + step * kStride, *const outs = tile.dout + step * kStride;
        Sums scores = keys.times(content);
        weigh(scores, step);
        add_key_gradients<false>(scores, values.times(outs), keep.columns(step), ColumnNumbers(tile.total + step),
                                 content, outs, dkeys, dvalues);
      }
    }
  }
  // Sums of rows behind the last slot have no place there.
  dkeys.write([&](int row) { return dkeys_to.row(rank, share, own + row, kDepth); },
              [&](int) { return call.slot_score_scale * value_scale; }, Write::set);
  dvalues.write([&](int row) { return dvalues_to.row(rank, share, own + row, kDepth); },
                [&](int) { return value_scale; }, Write::set);
}

/// Two blocks of 16 slots a warp, which meet the same queries: what is read from shared memory for products is read
/// once for both. That is what cards wait for here whose products are not a warpgroup's. Sums of both blocks leave
/// registers for two blocks of threads on a multiprocessor.
template <class T, int kDepth>
inline constexpr bool kHasWideSlots = std::is_same_v<T, bf16>&& kDepth == 64;
/// Whole tiles of 128, but for at most one block of 16: what slots that there are not would cost is little.
inline bool are_wide_slots(std::int64_t slots) { return slots % 128 == 0 || slots % 128 > 112; }

/// 16 rows of each of two tiles as left operands, in registers.
template <int kDepth>
class TwoLeftRows {
 public:
  __device__ TwoLeftRows(const bf16* first, const bf16* second) : first_(first), second_(second) {}
  /// The products of both with the same 16 rows, which are loaded once.
  __device__ __forceinline__ void times(const bf16* others, Sums (&sums)[2]) const {
#pragma unroll
    for (int k = 0; k < kDepth / 16; ++k) {
      const RightFragment other = load_right(others + 16 * k, kTileStride<kDepth>);
      multiply_add(sums[0], first_.held(k), other);
      multiply_add(sums[1], second_.held(k), other);
    }
  }

 private:
  LeftRows<kDepth, true> first_, second_;
};

template <int kDepth>
struct TwoRowSums {
  RowSums<kDepth> of[2];

  /// Each += its weights times the same 16 rows of a tile.
  __device__ __forceinline__ void add(const Fragment (&weights)[2], const bf16* rows) {
#pragma unroll
    for (int k = 0; k < kDepth / 16; ++k) {
      const RightFragment right = load_right_transposed(rows + 16 * k, kTileStride<kDepth>);
      multiply_add(of[0].part[k], weights[0], right);
      multiply_add(of[1].part[k], weights[1], right);
    }
  }
};

template <class T, int kDepth>
std::size_t wide_slot_gradient_bytes() {
  return GradientMemory<T, kDepth>::bytes(false, false) + KeepBits::kBytes;
}

/// One item for every head, 128 slots and share of the queries. A warp has 16 of the first 64 and 16 of the others, and
/// adds in the same order as slot_gradients.
template <class T, int kDepth>
__global__ void __launch_bounds__(kAttentionThreads, 2)
    wide_slot_gradients(FusedCall<T> call, const T* dout, QueryNumbers numbers, Partials dkeys_to,
                        Partials dvalues_to) {
  constexpr int kStride = kTileStride<kDepth>;
  const SlotItem item(call, dkeys_to, 2 * kTileRows);
  const int rank = item.rank, share = item.share, slot0 = item.slot0, own = slot0 + 16 * warp_of_block();
  SharedPieces shared = shared_pieces<false>();
  const GradientMemory<T, kDepth> memory(shared, false, false);
  const QueryTile<T, kDepth>& tile = memory.tile;

  // Until they are held, the second 64 slots lie where the queries will.
  load_slots<kDepth, TileLayout::rows>(call, item.head, slot0, memory.keys, memory.values);
  load_slots<kDepth, TileLayout::rows>(call, item.head, slot0 + kTileRows, tile.content, tile.dout);
  finish_tiles<T>();
  __syncthreads();
  const int of_warp = 16 * warp_of_block() * kStride;
  const TwoLeftRows<kDepth> keys(memory.keys + of_warp, tile.content + of_warp);
  const TwoLeftRows<kDepth> values(memory.values + of_warp, tile.dout + of_warp);
  const KeepBits keep[] = {{memory.bits, call}, {shared.take<std::uint32_t>(KeepBits::kBytes), call}};
  const float scale = call.slot_score_scale * kLog2OfE, value_scale = call.dropout_multiplier * call.slot_value_scale;
  TwoRowSums<kDepth> dkeys, dvalues;

  for (QueryTiles queries(call, rank, share, item.shares); queries.any(); queries.advance(call, rank)) {
    const Place& place = queries.place();
    const int query0 = queries.first_query();
    __syncthreads();
    tile.template load<TileLayout::rows>(call, numbers, dout, place, query0, 1 / value_scale);
    const std::uint64_t drawn = call.dropout_row(place, query0 + KeepBits::drawn_query()) +
                                static_cast<std::uint64_t>(call.dropout_reach + slot0);
    keep[0].template draw<true>(call, drawn);
    keep[1].template draw<true>(call, drawn + kTileRows);
    finish_tiles<T>();
    __syncthreads();
#pragma unroll 1
    for (int step = 0; step < kTileRows; step += 16) {
      // A warp always has slots, as are_wide_slots() says; without being asked, nvcc spills two registers more.
      if (query0 + step >= call.block || own >= call.persistent) continue;
      const bf16 *const content = tile.content + step * kStride, *const outs = tile.dout + step * kStride;
      Sums scores[2], dweights[2];
      keys.times(content, scores);
      const ColumnNumbers base(tile.base + step);
#pragma unroll
      for (Sums& one : scores) {
#pragma unroll
        for (int e = 0; e < 8; ++e) one.value[e] = power_of_two(scale * one.value[e] - base[e]);
      }
      values.times(outs, dweights);
      const ColumnNumbers total(tile.total + step);
      Fragment kept_weights[2], dscores[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        weigh_key_gradients(scores[i], dweights[i], keep[i].columns(step), total, kept_weights[i], dscores[i]);
      dvalues.add(kept_weights, outs);
      dkeys.add(dscores, content);
    }
  }
  const auto write = [&](const RowSums<kDepth>& sums, const Partials& to, int first, float factor) {
    sums.write([&](int row) { return to.row(rank, share, first + row, kDepth); }, [&](int) { return factor; },
               Write::set);
  };
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    write(dkeys.of[i], dkeys_to, own + i * kTileRows, call.slot_score_scale * value_scale);
    write(dvalues.of[i], dvalues_to, own + i * kTileRows, value_scale);
  }
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
