#pragma once
/// Fused attention, backward: gradients of a tile of queries, and the tile's share of the span's gradient.

#include "cuda/attention/fused_attention_gradients.cuh"
#include "cuda/block.cuh"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// What the kernel writes.
template <class T>
struct QueryGradients {
  TargetElements<T> content;
  TargetElements<T> position;  ///< null where one query serves both: then its gradient is part of `content`
  double* span_shares;         ///< [H, B tiles], without S / ramp
};

/// Gradients of scores of 16 queries by distance, for the product with the position keys. A run of 16 distances is
/// complete when the next block of keys comes.
template <int kDepth>
class DistanceGradients {
 public:
  static constexpr int kColumns = 32, kStride = 40;  // a ring; neighbouring rows in other banks
  static constexpr std::size_t kBytes = sizeof(bf16) * 16 * kStride;

  __device__ explicit DistanceGradients(bf16* ring) : ring_(ring) {}
  /// Makes 16 columns zero. The lanes need a barrier before and after.
  __device__ __forceinline__ void clear(int first) const {
#pragma unroll
    for (int e = 0; e < 8; e += 2)
      store(at(Sums::row_of(e), (first & (kColumns - 1)) + Sums::column_of(e)), Pack<float, 2>{});
  }
  __device__ __forceinline__ void put(int row, int distance, std::uint16_t gradient) const {
    at(row, distance & (kColumns - 1))->bits = gradient;
  }
  /// sums += the 16 columns times the position keys of their distances, which are in `ring_of_keys`.
  __device__ __forceinline__ void finish(int first, const bf16* ring_of_keys, RowSums<kDepth>& sums) const {
    sums.add(load_fragment(at(0, first & (kColumns - 1)), kStride), ring_rows<kDepth>(ring_of_keys, first));
  }

 private:
  __device__ __forceinline__ bf16* at(int row, int column) const { return ring_ + row * kStride + column; }

  bf16* ring_;
};

/// Scores of 16 queries by distance, in two runs of 16 whose places are exchanged from block to block. The first place
/// is there twice, so that both runs are neighbours in either order.
using QueryDistanceScores = Diagonals<48>;

/// Memory of a warp for what lies by distance.
template <int kDepth>
inline constexpr std::size_t kQueryDistanceBytes = QueryDistanceScores::kBytes + DistanceGradients<kDepth>::kBytes;
/// With heads of 64, that of all warps takes two tiles, and content queries are held in registers. So three tiles lie
/// side by side: content queries, spare, position queries. The first two serve again, or the last two where one query
/// serves both: three blocks share a multiprocessor either way.
template <int kDepth>
inline constexpr bool kQueriesReused =
    kDepth <= 64 && kTileWarps* kQueryDistanceBytes<kDepth> <= 2 * kTileBytes<kDepth>;

template <class T, int kDepth>
std::size_t query_gradient_bytes(const FusedCall<T>& call) {
  if constexpr (kQueriesReused<kDepth>)
    return GradientMemory<T, kDepth>::bytes(false, call.positions) + 2 * kTileBytes<kDepth>;
  return GradientMemory<T, kDepth>::bytes(call.two_queries, call.positions) +
         (call.positions ? kTileWarps * kQueryDistanceBytes<kDepth> : 0);
}

/// Totals of the tile's queries, dout . out, each made by two lanes: to memory for the other kernels, and for this one.
template <class T, int kDepth>
__device__ __forceinline__ void sum_totals(const FusedCall<T>& call, const Place& place, int first, const T* out,
                                           const T* dout, const QueryNumbers& numbers,
                                           const QueryTile<T, kDepth>& tile) {
  static_assert(kAttentionThreads == 2 * kTileRows);
  const int row = static_cast<int>(threadIdx.x) / 2, half = static_cast<int>(threadIdx.x) % 2;
  const T* const x = call.query_row(out, place, first + row);
  const T* const y = call.query_row(dout, place, first + row);
  float sum = 0;
  if (x != nullptr)
    for (int i = half * 2; i < kDepth; i += 4) {
      const Pack<float, 2> a = load<2>(x + i), b = load<2>(y + i);
      sum += a.value[0] * b.value[0] + a.value[1] * b.value[1];
    }
  sum += __shfl_xor_sync(kAllLanes, sum, 1);
  if (half != 0) return;
  const int number = call.query_number(place, first + row);
  tile.base[row] = numbers.base_of(number, x != nullptr);
  tile.total[row] = sum;
  if (x != nullptr) numbers.total[number] = sum;
}

/// Gradients of scores, without the factor of scores and without what kept weights are multiplied by. weights: before
/// dropout; total: divided by that multiplier.
__device__ __forceinline__ Fragment score_gradients(const Sums& weights, const Sums& dweights, const KeptRows& kept,
                                                    const float (&total)[2]) {
  Sums dscores;
#pragma unroll
  for (int e = 0; e < 8; ++e)
    dscores.value[e] = weights.value[e] * ((kept.keeps(e) ? dweights.value[e] : 0.0f) - total[e / 2 % 2]);
  return fragment(dscores);
}

/// kByWarpgroup: products with keys, values and slots are a warpgroup's, of which all warps then meet every block that
/// one of them sees.
template <class T, int kDepth, bool kByWarpgroup>
__global__ void __launch_bounds__(kAttentionThreads, kResidentBlocks<kDepth>)
    query_gradients(FusedCall<T> call, const T* out, const T* dout, QueryNumbers numbers, QueryGradients<T> wanted) {
  constexpr int kStride = kTileStride<kDepth>;
  const int item = static_cast<int>(blockIdx.x);
  const Place place = call.place(item / call.tiles / call.streams, item / call.tiles % call.streams);
  const int first = item % call.tiles * kTileRows, row0 = first + 16 * warp_of_block();
  SharedPieces shared = shared_pieces<kByWarpgroup>();
  constexpr bool kReused = kQueriesReused<kDepth>;
  bf16* const queries_memory = kReused ? shared.take<bf16>(3 * kTileBytes<kDepth>) : nullptr;
  const GradientMemory<T, kDepth> memory(shared, call.two_queries && !kReused, call.positions, queries_memory);
  QueryTile<T, kDepth> tile = memory.tile;
  if (kReused && call.two_queries) tile.position = queries_memory + 2 * kTileRows * kStride;

  load_tile<kDepth>(tile.content, call.query_rows(call.content_query, place), first);
  if (call.two_queries) load_tile<kDepth>(tile.position, call.query_rows(call.position_query, place), first);
  load_tile<kDepth>(tile.dout, call.query_rows(dout, place), first);
  sum_totals<T, kDepth>(call, place, first, out, dout, numbers, tile);
  finish_tiles<T>();
  __syncthreads();
  const int warp_row = 16 * warp_of_block();
  const LeftRows<kDepth> queries(tile.content + warp_row * kStride);
  const KeepBits keep(memory.bits, call);
  const std::uint64_t drawn_row = call.dropout_row(place, first + KeepBits::drawn_query());
  const float base[] = {tile.base[warp_row + Sums::row_of(0)], tile.base[warp_row + Sums::row_of(2)]};
  // Divided by what kept weights are multiplied by: here for slots, then for the context.
  const float slot_value_scale = call.dropout_multiplier * call.slot_value_scale;
  float total[] = {tile.total[warp_row + Sums::row_of(0)] / slot_value_scale,
                   tile.total[warp_row + Sums::row_of(2)] / slot_value_scale};
  RowSums<kDepth> dcontent;

  // Persistent slots. First: what multiplies their scores alone is applied once.
  const float slot_scale = call.slot_score_scale * kLog2OfE;
  const LeftRows<kDepth> held_outs(tile.dout + warp_row * kStride);
  for (int slot0 = 0; slot0 < call.persistent; slot0 += kTileRows) {
    __syncthreads();
    load_slots<kDepth, kOperandLayout<kByWarpgroup>>(call, place.head, slot0, memory.keys, memory.values);
    keep.template draw<true>(call, drawn_row + static_cast<std::uint64_t>(call.dropout_reach + slot0));
    finish_tiles<T, kByWarpgroup>();
    __syncthreads();
    const auto weigh = [&](Sums& scores, int block) {
#pragma unroll
      for (int e = 0; e < 8; ++e) scores.value[e] = power_of_two(slot_scale * scores.value[e] - base[e / 2 % 2]);
      // Rows behind the last slot are zeros, and so is what the product takes of them.
      if (slot0 + 16 * block + 16 > call.persistent) {
#pragma unroll
        for (int e = 0; e < 8; ++e)
          if (slot0 + 16 * block + Sums::column_of(e) >= call.persistent) scores.value[e] = 0;
      }
    };
    if constexpr (kByWarpgroup) {
      constexpr int kTogether = 2;  // blocks: more need more registers than three blocks of threads leave
#pragma unroll
      for (int first_block = 0; first_block < kTileRows / 16; first_block += kTogether) {
        const bf16* const keys = memory.keys + 16 * first_block * kOperandColumns;
        Sums scores[kTogether], dweights[kTogether];
        Fragment dscores[kTogether];
        queries.times_operand(scores, keys);
        held_outs.times_operand(dweights, memory.values + 16 * first_block * kOperandColumns);
#pragma unroll
        for (int b = 0; b < kTogether; ++b) {
          weigh(scores[b], first_block + b);
          dscores[b] = score_gradients(scores[b], dweights[b], keep.rows(first_block + b), total);
        }
        multiply_add_rows(dcontent.part, dscores, keys);
      }
    } else {
#pragma unroll
      for (int block = 0; block < kTileRows / 16; ++block) {
        const bf16* const keys = memory.keys + 16 * block * kStride;
        Sums scores = queries.times(keys);
        weigh(scores, block);
        const Sums dweights = held_outs.times(memory.values + 16 * block * kStride);
        dcontent.add(score_gradients(scores, dweights, keep.rows(block), total), keys);
      }
    }
  }
  dcontent.scale(call.slot_score_scale * call.slot_value_scale / call.score_scale);
  for (float& of_row : total) of_row *= call.slot_value_scale;

  const Band band(call, place);
  const int farthest = band.farthest(), calm = band.calm();
  const KeyRange of_tile(call, place, farthest, first, kTileRows), of_warp(call, place, farthest, row0, 16);
  if constexpr (kReused) __syncthreads();  // all warps hold their queries
  SharedPieces reused(kReused && !call.two_queries ? queries_memory + kTileRows * kStride : queries_memory);
  SharedPieces& free = kReused ? reused : shared;
  const QueryDistanceScores by_distance(call.positions ? free.of_warp<float>(QueryDistanceScores::kBytes) : nullptr);
  const DistanceGradients<kDepth> gradients(call.positions ? free.of_warp<bf16>(DistanceGradients<kDepth>::kBytes)
                                                           : nullptr);
  // The context has more to hold: it reads these rows again.
  const LeftRows<kDepth, false> outs(tile.dout + warp_row * kStride);
  const LeftRows<kDepth, false> position_queries(tile.position + warp_row * kStride);
  const float scale = call.score_scale * kLog2OfE;
  RowSums<kDepth> dposition;
  float of_span = 0;

  const ContextRows<T, kDepth> rows(call, place);
  const int low = floor16(of_tile.low);
  if (call.positions && low <= of_tile.high) load_distances<kDepth>(call, place, first - low, memory.positions);
  const std::uint64_t drawn_place =  // of position 0
      drawn_row + static_cast<std::uint64_t>(std::int64_t{call.longest} - first - KeepBits::drawn_query());
  KeepBits::Run run = keep.begin_run(call, drawn_place + static_cast<std::uint64_t>(std::int64_t{low}));
  for (int key0 = low; key0 <= of_tile.high; key0 += kTileRows) {
    __syncthreads();
    // Found anew for every tile where registers are short.
    load_context<kDepth, kOperandLayout<kByWarpgroup>>(
        call, place, kByWarpgroup ? ContextRows<T, kDepth>(call, place) : rows, key0, memory.keys, memory.values);
    if (call.positions) load_distances<kDepth>(call, place, first - key0 - kTileRows, memory.positions);
    keep.draw(call, drawn_place + static_cast<std::uint64_t>(std::int64_t{key0}), run);
    finish_tiles<T, kByWarpgroup>();
    __syncthreads();
#pragma unroll 1
    for (int block = 0; block < kTileRows / 16; ++block) {
      const int key = key0 + 16 * block, apart = row0 - key;  // distance of the diagonal
      const bool seen = key + 15 >= of_warp.low && key <= of_warp.high;
      if (kByWarpgroup ? key > of_tile.high : !seen) continue;
      constexpr int kRow = kOperandStride<kDepth, kByWarpgroup>;
      const bf16* const keys = memory.keys + 16 * block * kRow;
      Sums scores = queries.template times_block<kByWarpgroup>(keys);
      if (call.positions && seen) {
        const int shift = key & 16;  // of the place of the farther run: 0 or 16, from block to block the other one
        if (key <= of_warp.low) {    // the first block
          by_distance.put(16 + shift, position_queries.times(ring_rows<kDepth>(memory.positions, apart)));
          gradients.clear(apart);
        }
        const Sums nearer = position_queries.times(ring_rows<kDepth>(memory.positions, apart - 16));
        __syncwarp();
        by_distance.put(shift, nearer);
        if (shift == 0) by_distance.put(32, nearer);
        gradients.clear(apart - 16);
        __syncwarp();
#pragma unroll
        for (int e = 0; e < 8; ++e) scores.value[e] += by_distance.of_rows(e, shift);
      }
      const Sums dweights = outs.template times_block<kByWarpgroup>(memory.values + 16 * block * kRow);
      const KeptRows kept = keep.rows(block);
#pragma unroll
      for (int e = 0; e < 8; ++e) scores.value[e] = scale * scores.value[e] - base[e / 2 % 2];
      if (apart - 15 < band.nearest || apart + 15 > calm || key < place.oldest) {
#pragma unroll
        for (int e = 0; e < 8; ++e) {
          const int column = Sums::column_of(e), distance = apart + Sums::row_of(e) - column;
          const bool exists = key + column >= place.oldest;
          if (exists && band.is_corner(distance))
            of_span += power_of_two(fminf(scores.value[e], 18 * kLog2OfE)) *
                       ((kept.keeps(e) ? dweights.value[e] : 0.0f) - total[e / 2 % 2]);
          scores.value[e] = weight_of(band, distance, exists, scores.value[e]);
        }
      } else {
#pragma unroll
        for (int e = 0; e < 8; ++e) scores.value[e] = power_of_two(scores.value[e]);
      }
      Fragment dscores{};
      if (seen) dscores = score_gradients(scores, dweights, kept, total);
      dcontent.template add_block<kByWarpgroup>(dscores, keys);
      if (call.positions && seen) {
#pragma unroll
        for (int e = 0; e < 8; ++e)
          gradients.put(Sums::row_of(e), apart + Sums::row_of(e) - Sums::column_of(e),
                        static_cast<std::uint16_t>(dscores.word[e / 2] >> e % 2 * 16));
        __syncwarp();
        gradients.finish(apart, memory.positions, dposition);
      }
    }
    // The last run, nearer than the last block, is finished before its position keys leave the ring.
    if (call.positions && of_warp.low <= of_warp.high && of_warp.high >= key0 && of_warp.high < key0 + kTileRows)
      gradients.finish(row0 - floor16(of_warp.high) - 16, memory.positions, dposition);
  }

  if (!call.two_queries) dcontent.add(dposition);
  const auto score_scale = [&](int) { return call.score_scale * call.dropout_multiplier; };
  dcontent.write([&](int row) { return call.query_row(wanted.content.data, place, row0 + row); }, score_scale,
                 wanted.content.write);
  dposition.write([&](int row) { return call.query_row(wanted.position.data, place, row0 + row); }, score_scale,
                  wanted.position.write);
  if (call.ramp == 0) return;
  // Where the queries' numbers were: nothing is to lie before operands that are aligned.
  const double share = block_sum<kAttentionThreads>(static_cast<double>(of_span * call.dropout_multiplier),
                                                    reinterpret_cast<double*>(tile.base));
  if (threadIdx.x == 0)
    wanted.span_shares[(place.head * call.streams + place.stream) * call.tiles + item % call.tiles] = share;
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
