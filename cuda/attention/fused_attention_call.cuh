#pragma once
/// What the kernels of fused attention know of a call, and where its rows lie in memory. Rules and formulas:
/// core/kernels/attention.hpp; the kernels: cuda/attention/fused_attention.hpp.

#include <algorithm>
#include <numbers>
#include <utility>

#include "cuda/attention/fused_attention.hpp"
#include "cuda/launch.hpp"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

inline constexpr int kTileRows = 64;           ///< of queries, keys, slots or distances: 16 for each warp of a block
inline constexpr int kAttentionThreads = 128;  ///< of a block
/// Scores are multiplied by this, so that exponentials are powers of two.
inline constexpr float kLog2OfE = static_cast<float>(std::numbers::log2e);

inline std::int64_t tiles_of(std::int64_t rows) { return (rows + kTileRows - 1) / kTileRows; }

/// The heads in order of decreasing windows. A block's number begins with the place in this list, so that the longest
/// work is started first.
struct HeadTable {
  int head[kMostFusedHeads];
  int window[kMostFusedHeads];               ///< positions before the query; -1: no context at all
  std::int64_t first_past[kMostFusedHeads];  ///< row in the packed past
};

/// Numbers of items per head: item first[rank] is the first one of the head with that rank.
struct HeadItems {
  int first[kMostFusedHeads + 1];

  __device__ int rank_of(int item) const {
    int rank = 0;
    while (first[rank + 1] <= item) ++rank;
    return rank;
  }
};

/// The head and the stream that a block of threads works on.
struct Place {
  int head, window;
  int stream;
  std::int64_t past_row;  ///< first row of this stream's past
  int ring_start;         ///< place of the oldest position in that past
  int oldest;             ///< first position that exists, counted from the start of the block; at least -window
};

/// `count` rows, `stride` elements apart; fewer than 2^31 elements in all.
template <class U>
struct TensorRows {
  U* first;
  int stride, count;

  /// nullptr for a row that there is not.
  __device__ __forceinline__ U* row(int number) const {
    if (static_cast<unsigned>(number) >= static_cast<unsigned>(count)) return nullptr;
    return first + static_cast<unsigned>(number) * static_cast<unsigned>(stride);
  }
};

/// T: storage of the large tensors; sums, scores and statistics are f32.
template <class T>
struct FusedCall {
  int streams, block, heads, depth, persistent;
  int tiles;  ///< of a stream's queries
  int nearest, longest, mask_offset;
  int ramp;  ///< 0: no mask
  RampGradient ramp_gradient;
  std::int64_t past_count;
  bool two_queries, positions, drops;
  RandomStream random;
  std::uint32_t round_keys[10][2];                 ///< of Philox, under the random stream's seed
  std::uint32_t keep_low_bits, keep_reversed_top;  ///< of the threshold of dropout, for both half-words
  int dropout_reach, dropout_stride;
  float dropout_multiplier, score_scale, slot_score_scale, slot_value_scale;
  const T *content_query, *position_query;  ///< one and the same without two_queries
  const T *past_keys, *past_values, *keys, *values, *position_keys, *slot_keys, *slot_values;
  std::int64_t position_stride;
  bool positions_per_head;
  const float* span;
  const std::int32_t* past_valid;
  HeadTable table{};  // equal calls have equal bytes, in the places of heads that there are not too

  FusedCall(const AttentionInputs& in, const AttentionOptions& options, RandomStream of_random)
      : streams(static_cast<int>(in.content_query.shape()[0])),
        block(static_cast<int>(in.content_query.shape()[1])),
        heads(options.heads),
        depth(static_cast<int>(in.content_query.shape()[2] / options.heads)),
        persistent(in.slot_keys ? static_cast<int>(in.slot_keys.shape()[1]) : 0),
        tiles(static_cast<int>(tiles_of(block))),
        nearest(options.min_distance),
        longest(options.max_distance),
        mask_offset(options.mask_offset),
        ramp(in.span ? options.ramp : 0),
        ramp_gradient(options.ramp_gradient),
        past_count(options.past_count),
        two_queries(static_cast<bool>(in.position_query)),
        positions(static_cast<bool>(in.position_keys)),
        drops(options.dropout.active()),
        random(of_random),
        keep_low_bits((options.dropout.threshold & 0x7fffu) * 0x10001u),
        keep_reversed_top((~options.dropout.threshold & 0x8000u) * 0x10001u),
        dropout_reach((options.max_distance + 1 - options.min_distance + 7) / 8 * 8),
        dropout_stride((dropout_reach + persistent + 7) / 8 * 8),
        dropout_multiplier(static_cast<float>(options.dropout.multiplier)),
        score_scale(static_cast<float>(options.score_scale)),
        slot_score_scale(static_cast<float>(options.slot_score_scale)),
        slot_value_scale(static_cast<float>(options.slot_value_scale)),
        content_query(data(in.content_query)),
        position_query(data(in.position_query ? in.position_query : in.content_query)),
        past_keys(data(in.past_keys)),
        past_values(data(in.past_values)),
        keys(data(in.keys)),
        values(data(in.values)),
        position_keys(data(in.position_keys)),
        slot_keys(data(in.slot_keys)),
        slot_values(data(in.slot_values)),
        position_stride(positions ? in.position_keys.shape()[1] : 0),
        positions_per_head(position_stride > depth),
        span(in.span ? in.span.data<const float>() : nullptr),
        past_valid(in.past_valid ? in.past_valid.data<const std::int32_t>() : nullptr) {
    std::uint32_t running[] = {static_cast<std::uint32_t>(random.seed), static_cast<std::uint32_t>(random.seed >> 32)};
    for (auto& round : round_keys) {
      round[0] = std::exchange(running[0], running[0] + 0x9E3779B9u);
      round[1] = std::exchange(running[1], running[1] + 0xBB67AE85u);
    }
    const auto window_of = [&](int head) {
      return options.max_distance == 0 ? -1 : options.windows.window[static_cast<std::size_t>(head)];
    };
    for (int rank = 0; rank < heads; ++rank) table.head[rank] = rank;
    std::sort(table.head, table.head + heads,
              [&](int a, int b) { return window_of(a) != window_of(b) ? window_of(a) > window_of(b) : a < b; });
    for (int rank = 0; rank < heads; ++rank) {
      const int head = table.head[rank];
      table.window[rank] = window_of(head);
      table.first_past[rank] =
          options.max_distance == 0 ? 0 : streams * options.windows.first[static_cast<std::size_t>(head)];
    }
  }
  static const T* data(const Tensor& tensor) { return tensor ? tensor.data<const T>() : nullptr; }

  /// Places of the band of the head with this rank.
  int slots(int rank) const { return table.window[rank] < 0 ? 0 : std::max(0, table.window[rank] + 1 - nearest); }

  __device__ Place place(int rank, int stream) const {
    Place p;
    p.head = table.head[rank];
    p.window = table.window[rank];
    p.stream = stream;
    p.past_row = table.first_past[rank] + std::int64_t{stream} * p.window;
    p.ring_start = p.window > 0 ? static_cast<int>(past_count % p.window) : 0;
    p.oldest = -p.window;
    if (past_valid != nullptr && past_valid[stream] < p.window) p.oldest = -past_valid[stream];
    return p;
  }

  // Rows of tensors that are laid out like the inputs; nullptr where there is none.

  /// Of a [B, M, H D] tensor.
  template <class U>
  __device__ __forceinline__ U* query_row(U* tensor, const Place& p, int query) const {
    return query_rows(tensor, p).row(query);
  }
  template <class U>
  __device__ __forceinline__ TensorRows<U> query_rows(U* tensor, const Place& p) const {
    return {tensor == nullptr ? nullptr : tensor + (std::int64_t{p.stream} * block * heads + p.head) * depth,
            heads * depth, tensor == nullptr ? 0 : block};
  }
  /// Of a stream's past. kDepth is the depth, for the compiler.
  template <int kDepth, class U>
  __device__ __forceinline__ TensorRows<U> past_rows(U* past, const Place& p) const {
    return {past == nullptr ? nullptr : past + p.past_row * kDepth, kDepth, past == nullptr ? 0 : p.window};
  }
  /// Which of them a position is that is below 0 and at least -window.
  __device__ __forceinline__ int past_place(const Place& p, int position) const {
    const int row = position + p.window + p.ring_start;
    return row >= p.window ? row - p.window : row;
  }
  /// Of a position, from the packed past or the block.
  template <class U>
  __device__ __forceinline__ U* context_row(U* past, U* here, const Place& p, int position) const {
    if (position >= 0) return query_row(here, p, position);
    if (past == nullptr || position < -p.window) return nullptr;
    return past + (p.past_row + past_place(p, position)) * depth;
  }
  template <int kDepth, class U>
  __device__ __forceinline__ TensorRows<U> slot_rows(U* tensor, int head) const {
    return {tensor + static_cast<std::int64_t>(head) * persistent * kDepth, kDepth, persistent};
  }
  /// By distance - nearest.
  __device__ __forceinline__ TensorRows<const T> position_rows(const Place& p) const {
    return {position_keys + (positions_per_head ? p.head * depth : 0), static_cast<int>(position_stride),
            p.window + 1 - nearest};
  }

  /// Number of a query among those of all streams and heads.
  __device__ __forceinline__ int query_number(const Place& p, int query) const {
    return (p.stream * heads + p.head) * block + query;
  }
  /// Number of the first random element of a query; see core/kernels/attention.hpp.
  __device__ __forceinline__ std::uint64_t dropout_row(const Place& p, int query) const {
    return static_cast<std::uint64_t>(std::int64_t{query_number(p, query)} * dropout_stride);
  }
  /// Number of the random element of the place in the query's row of the key at `position`. Meaningless, but the
  /// neighbour of meaningful ones, outside of the window.
  __device__ __forceinline__ std::uint64_t dropout_element(const Place& p, int query, int position) const {
    return dropout_row(p, query) + static_cast<std::uint64_t>(std::int64_t{longest} - query + position);
  }
};

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
