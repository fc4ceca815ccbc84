#include "cuda/attention/fused_attention_band.cuh"
#include "cuda/attention/fused_attention_depth.hpp"
#include "cuda/attention/fused_attention_tile.cuh"
#include "cuda/power_of_two.cuh"

namespace engram::cuda {
namespace {

constexpr int kBlocks = kTileRows / 16;  // of 16 keys in a tile

/// Calls body(element) for a lane's elements of one of its two rows.
template <int kCount, class Body>
__device__ __forceinline__ void for_row(Sums (&sums)[kCount], int row, Body body) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
#pragma unroll
    for (int e = 0; e < 8; ++e)
      if (e / 2 % 2 == row) body(sums[i].value[e]);
  }
}

/// Output of 16 queries so far. A lane has two rows of everything: those of elements 0 and 2 of its sums.
template <int kDepth>
struct RunningOutput {
  RowSums<kDepth> out;                    // sum of weights times values, as if the largest score were 0
  float top[2] = {-INFINITY, -INFINITY};  // largest score of the row; scores are in base 2
  float sum[2] = {0, 0};                  // of the weights in this lane's columns

  /// Makes room for larger scores: scores -> 2^(score - new top).
  __device__ __forceinline__ void weigh(Sums (&scores)[kBlocks]) {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      float largest = top[row];
      for_row(scores, row, [&](float& score) { largest = fmaxf(largest, score); });
      largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, 2));
      const float base = largest == -INFINITY ? 0.0f : largest;  // nothing seen so far: no score is a number
      const float shrink = power_of_two(top[row] - base);
      top[row] = largest;
      sum[row] *= shrink;
      for_row(out.part, row, [&](float& element) { element *= shrink; });
      for_row(scores, row, [&](float& score) { score = power_of_two(score - base); });
    }
  }
};

template <int kDepth>
struct ForwardMemory {
  bf16 *queries, *position_queries, *keys, *values, *positions = nullptr;
  float* by_distance = nullptr;  // of this warp
  std::uint8_t* bits;            // of this warp

  __device__ ForwardMemory(bool two_queries, bool with_positions) {
    SharedPieces shared;
    queries = position_queries = shared.take<bf16>(kTileBytes<kDepth>);
    if (two_queries) position_queries = shared.take<bf16>(kTileBytes<kDepth>);
    keys = shared.take<bf16>(kTileBytes<kDepth>);
    values = shared.take<bf16>(kTileBytes<kDepth>);
    bits = shared.of_warp<std::uint8_t>(KeepBits<kTileRows>::kBytes);
    if (!with_positions) return;
    positions = shared.take<bf16>(2 * kTileBytes<kDepth>);
    by_distance = shared.of_warp<float>(kRingBytes);
  }
  static std::size_t bytes(bool two_queries, bool with_positions) {
    return (two_queries ? 4 : 3) * kTileBytes<kDepth> + kTileWarps * KeepBits<kTileRows>::kBytes +
           (with_positions ? 2 * kTileBytes<kDepth> + kTileWarps * kRingBytes : 0);
  }
};

template <class T, int kDepth>
__global__ void __launch_bounds__(kAttentionThreads, kResidentBlocks<kDepth>)
    forward_tile(FusedCall<T> call, T* out, float* lse) {
  constexpr int kStride = kTileStride<kDepth>;
  const int item = static_cast<int>(blockIdx.x);
  const Place place = call.place(item / call.tiles / static_cast<int>(call.streams), item / call.tiles % call.streams);
  const int first = item % call.tiles * kTileRows, row0 = first + 16 * warp_of_block();
  const Band band(call, place);
  const ForwardMemory<kDepth> memory(call.two_queries, call.positions);

  load_tile<kDepth>(memory.queries, first, [&](int q) { return call.query_row(call.content_query, place, q); });
  if (call.two_queries)
    load_tile<kDepth>(memory.position_queries, first,
                      [&](int q) { return call.query_row(call.position_query, place, q); });
  __syncthreads();
  const LeftRows<kDepth> queries(memory.queries + 16 * warp_of_block() * kStride);
  const LeftRows<kDepth, false> position_queries(memory.position_queries + 16 * warp_of_block() * kStride);
  const KeepBits<kTileRows> keep(memory.bits, call);
  RunningOutput<kDepth> state;

  // Sums the weights, and adds the values of the 16-row blocks from `begin` to `end` of the tile.
  const auto add_values = [&](Sums(&weights)[kBlocks], int begin, int end, float factor, auto element_of) {
    keep.draw(element_of);
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) {
      if (b < begin || b >= end) continue;
      const unsigned kept = keep.kept(element_of, Sums::row_of, [b](int e) { return 16 * b + Sums::column_of(e); });
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        state.sum[e / 2 % 2] += weights[b].value[e];
        weights[b].value[e] *= factor * keep.multiplier(kept, e);
      }
      state.out.add(fragment(weights[b]), memory.values + 16 * b * kStride);
    }
  };

  // The context: the keys that some query of the tile sees, then of these what this warp's queries see.
  const KeyRange of_tile(call, place, band.visible, first, kTileRows), of_warp(call, place, band.visible, row0, 16);
  int ready = row0 + 1;  // the distances from here on have scores; no multiple of 16: none have
  const float scale = call.score_scale * kLog2OfE;
  for (int key0 = floor16(of_tile.low); key0 <= of_tile.high; key0 += kTileRows) {
    const bool fresh = key0 == floor16(of_tile.low);
    __syncthreads();
    load_context<kDepth>(call, place, key0, memory.keys, memory.values);
    if (call.positions)
      load_distances<kDepth>(call, place, first - key0 - kTileRows, fresh ? kRingRows : kTileRows, memory.positions);
    __syncthreads();
    const int begin = of_warp.low <= key0 ? 0 : (of_warp.low - key0) / 16;
    const int end = of_warp.high < key0 ? 0 : (of_warp.high - key0) / 16 + 1;
    if (begin >= end) continue;

    Sums scores[kBlocks];
    unsigned masked = 0;  // bit b: some places of block b are not seen in full
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) {
      if (b < begin || b >= end) {
#pragma unroll
        for (int e = 0; e < 8; ++e) scores[b].value[e] = -INFINITY;
        continue;
      }
      const int key = key0 + 16 * b, apart = row0 - key;  // distance of the diagonal
      scores[b] = queries.times(memory.keys + 16 * b * kStride);
      if (call.positions) {
        __syncwarp();
        if (ready != apart) put_products(memory.by_distance, apart, position_queries, memory.positions);
        ready = apart - 16;
        put_products(memory.by_distance, ready, position_queries, memory.positions);
        __syncwarp();
      }
      if (apart - 15 < band.nearest || apart + 15 > band.full || key < place.oldest) masked |= 1u << b;
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const int row = Sums::row_of(e), column = Sums::column_of(e), distance = apart + row - column;
        float score = scores[b].value[e];
        if (call.positions) score += ring_value(memory.by_distance, row, distance);
        const bool seen = (masked >> b & 1u) == 0 ||
                          (distance >= band.nearest && distance <= band.visible && key + column >= place.oldest);
        scores[b].value[e] = seen ? scale * score : -INFINITY;
      }
    }
    state.weigh(scores);
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) {
      if ((masked >> b & 1u) == 0) continue;
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const int distance = row0 - key0 - 16 * b + Sums::row_of(e) - Sums::column_of(e);
        // Beyond, the weight is 0 already.
        if (distance > band.full && distance <= band.visible) scores[b].value[e] *= band.mask(distance);
      }
    }
    add_values(scores, begin, end, 1.0f, [&](int row) { return call.dropout_element(place, row0 + row, key0); });
  }

  // Persistent slots: no position, no mask, and every query sees all.
  const float slot_scale = call.slot_score_scale * kLog2OfE;
  for (int slot0 = 0; slot0 < call.persistent; slot0 += kTileRows) {
    __syncthreads();
    load_slots<kDepth>(call, place.head, slot0, memory.keys, memory.values);
    __syncthreads();
    if (row0 >= call.block) continue;
    const int count = call.persistent - slot0 < kTileRows ? call.persistent - slot0 : kTileRows;
    Sums scores[kBlocks];
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) {
      if (16 * b < count) scores[b] = queries.times(memory.keys + 16 * b * kStride);
#pragma unroll
      for (int e = 0; e < 8; ++e)
        scores[b].value[e] = 16 * b + Sums::column_of(e) < count ? slot_scale * scores[b].value[e] : -INFINITY;
    }
    state.weigh(scores);
    add_values(scores, 0, (count + 15) / 16, call.slot_value_scale, [&](int row) {
      return call.dropout_row(place, row0 + row) + static_cast<std::uint64_t>(call.dropout_reach + slot0);
    });
  }

  float factor[2];
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    float sum = state.sum[row];
    sum += __shfl_xor_sync(kAllLanes, sum, 1);
    sum += __shfl_xor_sync(kAllLanes, sum, 2);
    factor[row] = sum == 0 ? 0.0f : 1.0f / sum;
    const int query = row0 + Sums::row_of(2 * row);
    if (lane_of_warp() % 4 == 0 && query < call.block)
      lse[(place.stream * call.heads + place.head) * call.block + query] =
          sum == 0 ? -INFINITY : state.top[row] / kLog2OfE + logf(sum);
  }
  state.out.write([&](int row) { return call.query_row(out, place, row0 + row); },
                  [&](int half) { return factor[half]; }, Write::set);
}

}  // namespace

inline namespace ENGRAM_CUDA_DEVICE {

std::size_t fused_forward_shared_bytes(const AttentionInputs& in, const AttentionOptions& options) {
  std::size_t bytes = 0;
  const Tensor& queries = in.content_query;
  dispatch_fused(queries.dtype(), queries.shape()[2] / options.heads, [&]<class T, int kDepth>() {
    const FusedCall<T> call(in, options, {});
    bytes = ForwardMemory<kDepth>::bytes(call.two_queries, call.positions);
  });
  return bytes;
}

void fused_attention_forward(Step& step, const AttentionInputs& in, const AttentionOptions& options,
                             RandomStream random, Tensor& out, Tensor& lse) {
  dispatch_fused(out.dtype(), out.shape()[2] / options.heads, [&]<class T, int kDepth>() {
    const FusedCall<T> call(in, options, random);
    launch(step,
           {.blocks = call.heads * call.streams * call.tiles,
            .threads = kAttentionThreads,
            .shared_bytes = ForwardMemory<kDepth>::bytes(call.two_queries, call.positions)},
           forward_tile<T, kDepth>, call, out.data<T>(), lse.data<float>());
  });
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
