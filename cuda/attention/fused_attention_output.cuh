#pragma once
/// Fused attention, forward: output of a tile of queries.

#include "cuda/attention/fused_attention_band.cuh"
#include "cuda/attention/fused_attention_tile.cuh"
#include "cuda/power_of_two.cuh"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

inline constexpr int kKeyBlocks = kTileRows / 16;  ///< of 16 keys in a tile

/// Output of 16 queries so far. A lane has two rows of everything: those of elements 0 and 2 of its sums.
template <int kDepth>
struct RunningOutput {
  RowSums<kDepth> out;                    // sum of weights times values, as if the largest score were 0
  float top[2] = {-INFINITY, -INFINITY};  // largest score of the row, scaled; in base 2
  float base[2] = {0, 0};                 // the same, but a number also where nothing was seen so far
  float sum[2] = {0, 0};                  // of the weights in this lane's columns

  /// Makes room for larger scores, which count times scale > 0.
  __device__ __forceinline__ void make_room(const Sums (&scores)[kKeyBlocks], float scale) {
    float shrink[2];
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      float largest = -INFINITY;
#pragma unroll
      for (int b = 0; b < kKeyBlocks; ++b) {
#pragma unroll
        for (int e = 0; e < 8; ++e)
          if (e / 2 % 2 == row) largest = fmaxf(largest, scores[b].value[e]);
      }
      largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 2));
      const float before = top[row];
      top[row] = fmaxf(before, scale * largest);
      base[row] = top[row] == -INFINITY ? 0.0f : top[row];
      shrink[row] = power_of_two(before - base[row]);
      sum[row] *= shrink[row];
    }
#pragma unroll
    for (int k = 0; k < kDepth / 16; ++k) {
#pragma unroll
      for (int e = 0; e < 8; ++e) out.part[k].value[e] *= shrink[e / 2 % 2];
    }
  }
  /// Weights of 16 keys, of which dropout keeps some, from their scores. `mask` multiplies them, of element e, before.
  template <class Mask>
  __device__ __forceinline__ Fragment weigh(const Sums& scores, float scale, const KeptRows& kept, Mask mask) {
    Sums of_keys;
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int row = e / 2 % 2;
      of_keys.value[e] = mask(e, power_of_two(scale * scores.value[e] - base[row]));
      sum[row] += of_keys.value[e];
    }
    Fragment weights = fragment(of_keys);
    weights.word[0] &= kept.mask<0>();
    weights.word[1] &= kept.mask<1>();
    weights.word[2] &= kept.mask<2>();
    weights.word[3] &= kept.mask<3>();
    return weights;
  }
};

/// Scores of 16 queries by distance: of the two runs of 16 distances that a block of keys meets, one serves the next
/// block too. Runs lie in two places that are exchanged from block to block; the first is there twice, so that both are
/// neighbours in either order.
using DistanceScores = Diagonals<48>;

template <int kDepth>
struct ForwardMemory {
  bf16 *queries, *position_queries, *keys, *values, *positions = nullptr;
  float* by_distance = nullptr;  // of this warp
  std::uint32_t* bits;

  __device__ ForwardMemory(SharedPieces shared, bool two_queries, bool with_positions) {
    queries = position_queries = shared.take<bf16>(kTileBytes<kDepth>);
    keys = shared.take<bf16>(kTileBytes<kDepth>);
    values = shared.take<bf16>(kTileBytes<kDepth>);
    bits = shared.take<std::uint32_t>(KeepBits::kBytes);
    if (!with_positions) return;
    positions = shared.take<bf16>(2 * kTileBytes<kDepth>);
    by_distance = shared.of_warp<float>(DistanceScores::kBytes);
    if (two_queries) position_queries = shared.take<bf16>(kTileBytes<kDepth>);
  }
  static std::size_t bytes(bool two_queries, bool with_positions) {
    return 3 * kTileBytes<kDepth> + KeepBits::kBytes +
           (with_positions ? (two_queries ? 3 : 2) * kTileBytes<kDepth> + kTileWarps * DistanceScores::kBytes : 0);
  }
};

/// kByWarpgroup: products with keys, values and slots are a warpgroup's, of which all warps then meet every tile that
/// one of them sees.
template <class T, int kDepth, bool kByWarpgroup>
__global__ void __launch_bounds__(kAttentionThreads, kResidentBlocks<kDepth>)
    forward_tile(FusedCall<T> call, T* out, float* lse) {
  constexpr int kStride = kTileStride<kDepth>;
  const int item = static_cast<int>(blockIdx.x);
  const Place place = call.place(item / call.tiles / call.streams, item / call.tiles % call.streams);
  const int first = item % call.tiles * kTileRows, row0 = first + 16 * warp_of_block();
  const ForwardMemory<kDepth> memory(shared_pieces<kByWarpgroup>(), call.two_queries, call.positions);

  load_tile<kDepth>(memory.queries, call.query_rows(call.content_query, place), first);
  if (memory.position_queries != memory.queries)
    load_tile<kDepth>(memory.position_queries, call.query_rows(call.position_query, place), first);
  finish_tiles<T>();
  __syncthreads();
  const LeftRows<kDepth> queries(memory.queries + 16 * warp_of_block() * kStride);
  const KeepBits keep(memory.bits, call);
  const std::uint64_t drawn_row = call.dropout_row(place, first + KeepBits::drawn_query());
  RunningOutput<kDepth> state;
  const auto as_it_is = [](int, float weight) { return weight; };

  // Persistent slots: no position, no mask, and every query sees all. First, so that what only their values are
  // multiplied by can be applied once.
  const float slot_scale = call.slot_score_scale * kLog2OfE;
  for (int slot0 = 0; slot0 < call.persistent; slot0 += kTileRows) {
    __syncthreads();
    load_slots<kDepth, kOperandLayout<kByWarpgroup>>(call, place.head, slot0, memory.keys, memory.values);
    keep.template draw<true>(call, drawn_row + static_cast<std::uint64_t>(call.dropout_reach + slot0));
    finish_tiles<T, kByWarpgroup>();
    __syncthreads();
    Sums scores[kKeyBlocks];
    if constexpr (kByWarpgroup) {
      queries.times_operand(scores, memory.keys);
    } else {
#pragma unroll
      for (int b = 0; b < kKeyBlocks; ++b) scores[b] = queries.times(memory.keys + 16 * b * kStride);
    }
    if (slot0 + kTileRows > call.persistent) {
#pragma unroll
      for (int b = 0; b < kKeyBlocks; ++b) {
#pragma unroll
        for (int e = 0; e < 8; ++e)
          if (slot0 + 16 * b + Sums::column_of(e) >= call.persistent) scores[b].value[e] = -INFINITY;
      }
    }
    state.make_room(scores, slot_scale);
    Fragment weights[kKeyBlocks];
#pragma unroll
    for (int b = 0; b < kKeyBlocks; ++b) {
      weights[b] = state.weigh(scores[b], slot_scale, keep.rows(b), as_it_is);
      if constexpr (!kByWarpgroup) state.out.add(weights[b], memory.values + 16 * b * kStride);
    }
    if constexpr (kByWarpgroup) multiply_add_rows(state.out.part, weights, memory.values);
  }
  state.out.scale(call.slot_value_scale);

  // The context: the keys that some query of the tile sees, then of these what this warp's queries see.
  const Band band(call, place);
  const KeyRange of_tile(call, place, band.visible, first, kTileRows), of_warp(call, place, band.visible, row0, 16);
  const LeftRows<kDepth, false> position_queries(memory.position_queries + 16 * warp_of_block() * kStride);
  const DistanceScores by_distance(memory.by_distance);
  bool fresh = true;  // no scores by distance so far
  const float scale = call.score_scale * kLog2OfE;
  const ContextRows<T, kDepth> rows(call, place);
  const int low = floor16(of_tile.low);
  if (call.positions && low <= of_tile.high) {
    __syncthreads();
    load_distances<kDepth>(call, place, first - low, memory.positions);
  }
  const std::uint64_t drawn_place =  // of position 0
      drawn_row + static_cast<std::uint64_t>(std::int64_t{call.longest} - first - KeepBits::drawn_query());
  KeepBits::Run run = keep.begin_run(call, drawn_place + static_cast<std::uint64_t>(std::int64_t{low}));
  for (int key0 = low; key0 <= of_tile.high; key0 += kTileRows) {
    __syncthreads();
    load_context<kDepth, kOperandLayout<kByWarpgroup>>(call, place, rows, key0, memory.keys, memory.values);
    if (call.positions) load_distances<kDepth>(call, place, first - key0 - kTileRows, memory.positions);
    keep.draw(call, drawn_place + static_cast<std::uint64_t>(std::int64_t{key0}), run);
    finish_tiles<T, kByWarpgroup>();
    __syncthreads();
    const int begin = of_warp.low <= key0 ? 0 : (of_warp.low - key0) / 16;
    const int end = of_warp.high < key0 ? 0 : (of_warp.high - key0) / 16 + 1;
    if (!kByWarpgroup && begin >= end) continue;

    const int apart0 = row0 - key0;  // distance of the diagonal of the first block
    if (call.positions && fresh && begin < end) {
      const int apart = apart0 - 16 * begin;
      by_distance.put(begin % 2 == 0 ? 16 : 32, position_queries.times(ring_rows<kDepth>(memory.positions, apart)));
      fresh = false;
    }
    Sums scores[kKeyBlocks];
    if constexpr (kByWarpgroup) queries.times_operand(scores, memory.keys);
    unsigned masked = 0;  // bit b: some places of block b are not seen in full
#pragma unroll
    for (int b = 0; b < kKeyBlocks; ++b) {
      const int apart = apart0 - 16 * b;
      if (b < begin || b >= end) {
#pragma unroll
        for (int e = 0; e < 8; ++e) scores[b].value[e] = -INFINITY;
        continue;
      }
      if constexpr (!kByWarpgroup) scores[b] = queries.times(memory.keys + 16 * b * kStride);
      if (call.positions) {
        const Sums nearer = position_queries.times(ring_rows<kDepth>(memory.positions, apart - 16));
        __syncwarp();
        by_distance.put(b % 2 * 16, nearer);
        if (b % 2 == 0) by_distance.put(32, nearer);
        __syncwarp();
#pragma unroll
        for (int e = 0; e < 8; ++e) scores[b].value[e] += by_distance.of_rows(e, b % 2 * 16);
      }
      if (apart - 15 < band.nearest || apart + 15 > band.full || key0 + 16 * b < place.oldest) {
        masked |= 1u << b;
#pragma unroll
        for (int e = 0; e < 8; ++e) {
          const int column = Sums::column_of(e), distance = apart + Sums::row_of(e) - column;
          if (distance < band.nearest || distance > band.visible || key0 + 16 * b + column < place.oldest)
            scores[b].value[e] = -INFINITY;
        }
      }
    }
    state.make_room(scores, scale);
    Fragment weights[kKeyBlocks];
#pragma unroll
    for (int b = 0; b < kKeyBlocks; ++b) {
      weights[b] = {};
      if (b < begin || b >= end) continue;
      const bool is_masked = (masked >> b & 1u) != 0;
      weights[b] = state.weigh(scores[b], scale, keep.rows(b), [&](int e, float weight) {
        if (!is_masked) return weight;
        const int distance = apart0 - 16 * b + Sums::row_of(e) - Sums::column_of(e);
        // Beyond, the weight is 0 already.
        return distance > band.full && distance <= band.visible ? weight * band.mask(distance) : weight;
      });
      if constexpr (!kByWarpgroup) state.out.add(weights[b], memory.values + 16 * b * kStride);
    }
    if constexpr (kByWarpgroup) multiply_add_rows(state.out.part, weights, memory.values);
  }

  float factor[2];
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    float sum = state.sum[row];
    sum += __shfl_xor_sync(kAllLanes, sum, 1);
    sum += __shfl_xor_sync(kAllLanes, sum, 2);
    factor[row] = sum == 0 ? 0.0f : call.dropout_multiplier / sum;
    const int query = row0 + Sums::row_of(2 * row);
    if (lane_of_warp() % 4 == 0 && query < call.block)
      lse[call.query_number(place, query)] = sum == 0 ? -INFINITY : state.top[row] / kLog2OfE + logf(sum);
  }
  const TensorRows<T> to = call.query_rows(out, place);
  state.out.write([&](int row) { return to.row(row0 + row); }, [&](int half) { return factor[half]; }, Write::set);
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
