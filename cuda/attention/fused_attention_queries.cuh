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
  static constexpr std::size_t kBytes = sizeof(bf16) * 16 * kRingStride;

  __device__ explicit DistanceGradients(bf16* ring) : ring_(ring) {}
  /// Makes 16 columns zero. The lanes need a barrier before and after.
  __device__ __forceinline__ void clear(int first) const {
#pragma unroll
    for (int e = 0; e < 8; e += 2)
      store(at(Sums::row_of(e), (first & (kRingColumns - 1)) + Sums::column_of(e)), Pack<float, 2>{});
  }
  __device__ __forceinline__ void put(int row, int distance, float gradient) const {
    *at(row, distance & (kRingColumns - 1)) = bf16(gradient);
  }
  /// sums += the 16 columns times the position keys of their distances, which are in `ring_of_keys`.
  __device__ __forceinline__ void finish(int first, const bf16* ring_of_keys, RowSums<kDepth>& sums) const {
    sums.add(load_fragment(at(0, first & (kRingColumns - 1)), kRingStride),
             ring_of_keys + (first & (kRingRows - 1)) * kTileStride<kDepth>);
  }

 private:
  __device__ __forceinline__ bf16* at(int row, int column) const { return ring_ + row * kRingStride + column; }

  bf16* ring_;
};

template <class T, int kDepth>
std::size_t query_gradient_bytes(const FusedCall<T>& call) {
  return GradientMemory<T, kDepth>::bytes(call.two_queries, call.positions) +
         (call.positions ? kTileWarps * DistanceGradients<kDepth>::kBytes : 0);
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
  const std::int64_t at = numbers.at(place.stream, place.head, first + row, call.heads, call.block);
  tile.base[row] = numbers.base_of(at, x != nullptr);
  tile.total[row] = sum;
  if (x != nullptr) numbers.total[at] = sum;
}

template <class T, int kDepth>
__global__ void __launch_bounds__(kAttentionThreads, kResidentBlocks<kDepth>)
    query_gradients(FusedCall<T> call, const T* out, const T* dout, QueryNumbers numbers, QueryGradients<T> wanted) {
  constexpr int kStride = kTileStride<kDepth>;
  const int item = static_cast<int>(blockIdx.x);
  const Place place = call.place(item / call.tiles / static_cast<int>(call.streams), item / call.tiles % call.streams);
  const int first = item % call.tiles * kTileRows, row0 = first + 16 * warp_of_block();
  const Band band(call, place);
  SharedPieces shared;
  const GradientMemory<T, kDepth> memory(shared, call.two_queries, call.positions);
  const QueryTile<T, kDepth>& tile = memory.tile;

  load_tile<kDepth>(tile.content, first, [&](int q) { return call.query_row(call.content_query, place, q); });
  if (call.two_queries)
    load_tile<kDepth>(tile.position, first, [&](int q) { return call.query_row(call.position_query, place, q); });
  load_tile<kDepth>(tile.dout, first, [&](int q) { return call.query_row(dout, place, q); });
  sum_totals<T, kDepth>(call, place, first, out, dout, numbers, tile);
  __syncthreads();
  const int warp_row = 16 * warp_of_block();
  const LeftRows<kDepth> queries(tile.content + warp_row * kStride), outs(tile.dout + warp_row * kStride);
  const LeftRows<kDepth, false> position_queries(tile.position + warp_row * kStride);
  const KeepBits<16> keep(memory.bits, call);
  const DistanceGradients<kDepth> by_distance(call.positions ? shared.of_warp<bf16>(DistanceGradients<kDepth>::kBytes)
                                                             : nullptr);
  const float base[] = {tile.base[warp_row + Sums::row_of(0)], tile.base[warp_row + Sums::row_of(2)]};
  const float total[] = {tile.total[warp_row + Sums::row_of(0)], tile.total[warp_row + Sums::row_of(2)]};
  RowSums<kDepth> dcontent, dposition;
  float of_span = 0;

  const int farthest = band.farthest(), calm = band.calm();
  const KeyRange of_tile(call, place, farthest, first, kTileRows), of_warp(call, place, farthest, row0, 16);
  int ready = row0 + 1;  // the distances from here on have scores; no multiple of 16: none have
  for (int key0 = floor16(of_tile.low); key0 <= of_tile.high; key0 += kTileRows) {
    const bool fresh = key0 == floor16(of_tile.low);
    __syncthreads();
    load_context<kDepth>(call, place, key0, memory.keys, memory.values);
    if (call.positions)
      load_distances<kDepth>(call, place, first - key0 - kTileRows, fresh ? kRingRows : kTileRows, memory.positions);
    __syncthreads();
    for (int key = key0; key < key0 + kTileRows; key += 16) {
      if (key + 15 < of_warp.low || key > of_warp.high) continue;
      const int apart = row0 - key;  // distance of the diagonal
      const bf16* const keys = memory.keys + (key - key0) * kStride;
      const Sums scores = queries.times(keys);
      const Sums dweights = outs.times(memory.values + (key - key0) * kStride);
      const auto element_of = [&](int row) { return call.dropout_element(place, row0 + row, key); };
      keep.draw(element_of);
      const unsigned kept = keep.kept(element_of, Sums::row_of, Sums::column_of);
      if (call.positions) {
        __syncwarp();
        if (ready != apart) {
          put_products(memory.by_distance, apart, position_queries, memory.positions);
          by_distance.clear(apart);
        }
        ready = apart - 16;
        put_products(memory.by_distance, ready, position_queries, memory.positions);
        by_distance.clear(ready);
        __syncwarp();
      }
      const bool masked = apart - 15 < band.nearest || apart + 15 > calm || key < place.oldest;
      Sums dscores;
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const int row = Sums::row_of(e), column = Sums::column_of(e), distance = apart + row - column;
        float score = scores.value[e];
        if (call.positions) score += ring_value(memory.by_distance, row, distance);
        const float exponent = call.score_scale * kLog2OfE * score - base[e / 2 % 2];
        const float multiplier = keep.multiplier(kept, e);
        const float excess = multiplier * dweights.value[e] - total[e / 2 % 2];
        float weight;
        if (masked) {
          const bool exists = key + column >= place.oldest;
          weight = weight_of(band, distance, exists, exponent);
          if (exists && band.is_corner(distance)) of_span += power_of_two(fminf(exponent, 18 * kLog2OfE)) * excess;
        } else {
          weight = power_of_two(exponent);
        }
        dscores.value[e] = call.score_scale * weight * excess;
        if (call.positions) by_distance.put(row, distance, dscores.value[e]);
      }
      dcontent.add(fragment(dscores), keys);
      if (call.positions) {
        __syncwarp();
        by_distance.finish(apart, memory.positions, dposition);
        if (key + 16 > of_warp.high) by_distance.finish(ready, memory.positions, dposition);
      }
    }
  }

  for (int slot0 = 0; slot0 < call.persistent; slot0 += kTileRows) {
    __syncthreads();
    load_slots<kDepth>(call, place.head, slot0, memory.keys, memory.values);
    __syncthreads();
    for (int slot = slot0; slot < slot0 + kTileRows; slot += 16) {
      if (slot >= call.persistent || row0 >= call.block) continue;
      const bf16* const keys = memory.keys + (slot - slot0) * kStride;
      const Sums scores = queries.times(keys);
      const Sums dweights = outs.times(memory.values + (slot - slot0) * kStride);
      const auto element_of = [&](int row) {
        return call.dropout_row(place, row0 + row) + static_cast<std::uint64_t>(call.dropout_reach + slot);
      };
      keep.draw(element_of);
      const unsigned kept = keep.kept(element_of, Sums::row_of, Sums::column_of);
      Sums dscores;
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const int column = Sums::column_of(e);
        const float exponent = call.slot_score_scale * kLog2OfE * scores.value[e] - base[e / 2 % 2];
        const float multiplier = keep.multiplier(kept, e);
        const float excess = multiplier * call.slot_value_scale * dweights.value[e] - total[e / 2 % 2];
        // Rows behind the last slot are zeros, and so is what the product takes of them.
        dscores.value[e] = call.slot_score_scale * power_of_two(exponent) * excess;
        if (slot + column >= call.persistent) dscores.value[e] = 0;
      }
      dcontent.add(fragment(dscores), keys);
    }
  }

  if (!call.two_queries) dcontent.add(dposition);
  const auto one = [](int) { return 1.0f; };
  dcontent.write([&](int row) { return call.query_row(wanted.content.data, place, row0 + row); }, one,
                 wanted.content.write);
  dposition.write([&](int row) { return call.query_row(wanted.position.data, place, row0 + row); }, one,
                  wanted.position.write);
  if (call.ramp == 0) return;
  const double share = block_sum<kAttentionThreads>(static_cast<double>(of_span));
  if (threadIdx.x == 0)
    wanted.span_shares[(place.head * call.streams + place.stream) * call.tiles + item % call.tiles] = share;
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
