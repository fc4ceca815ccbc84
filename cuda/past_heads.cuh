#pragma once
/// What the kernels that project the past are called with. Heads have windows of their own; a block of threads works
/// for one of them. Columns 0 to D - 1 of a head are those of its keys, D to 2 D - 1 those of its values.

#include <algorithm>
#include <cstdint>

#include "core/rules/head_windows.hpp"
#include "cuda/launch.hpp"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

inline constexpr int kMostPastHeads = 64;  ///< of a launch, so that their table fits into a kernel's arguments

/// Heads first, first + 1, ... of a model, at most kMostPastHeads of them. T: storage of cache, weights and results.
template <class T>
struct PastCall {
  int streams, cached, depth, width;
  const T* cache;        ///< [B, C, width]
  const T* weight[2]{};  ///< forward: of keys and of values, [heads D, width]
  T* y[2]{};             ///< forward: packed, [B total, D]
  const T* dy[2]{};      ///< backward: the same; null where there is none
  int heads, first_head;
  int window[kMostPastHeads];
  int used[kMostPastHeads];                  ///< of the window's positions: those that are cached, the last ones
  std::int64_t first_row[kMostPastHeads];    ///< of the head in the packed past
  int first_block[kMostPastHeads + 1] = {};  ///< of those that work for the head

  PastCall(const Tensor& states, const HeadWindows& windows, std::int64_t head_depth, int first)
      : streams(static_cast<int>(states.shape()[0])),
        cached(static_cast<int>(states.shape()[1])),
        depth(static_cast<int>(head_depth)),
        width(static_cast<int>(states.shape()[2])),
        cache(states.data<const T>()),
        heads(std::min(kMostPastHeads, windows.heads() - first)),
        first_head(first) {
    for (int i = 0; i < heads; ++i) {
      const auto head = static_cast<std::size_t>(first + i);
      window[i] = windows.window[head];
      used[i] = std::min(window[i], cached);
      first_row[i] = streams * windows.first[head];
    }
  }
  /// Gives every head the blocks that blocks_of(i) counts.
  template <class Blocks>
  void deal_blocks(Blocks blocks_of) {
    for (int i = 0; i < heads; ++i) first_block[i + 1] = first_block[i] + static_cast<int>(blocks_of(i));
  }
  int blocks() const { return first_block[heads]; }

  __device__ int head_of(int block) const {
    int i = 0;
    while (first_block[i + 1] <= block) ++i;
    return i;
  }
  /// The row of a weight that makes a column of the head; beyond the last column that of the last.
  __device__ __forceinline__ const T* weight_row(int head, int column) const {
    if (column >= 2 * depth) column = 2 * depth - 1;
    const int values = column >= depth ? 1 : 0;
    return weight[values] + (static_cast<std::int64_t>(first_head + head) * depth + column - values * depth) * width;
  }
  /// Where the head's row number `row` begins in y and dy, in elements.
  __device__ __forceinline__ std::int64_t packed_row(int head, std::int64_t row) const {
    return (first_row[head] + row) * depth;
  }
  /// Of the row that begins there in `of`, y or dy, this column; null where there is none.
  template <class U>
  __device__ __forceinline__ U* element(U* const (&of)[2], std::int64_t packed_row, int column) const {
    const int values = column >= depth ? 1 : 0;
    if (column >= 2 * depth || of[values] == nullptr) return nullptr;
    return of[values] + packed_row + column - values * depth;
  }
  /// The state of a row of the head's packed past; null for one that is not cached.
  __device__ __forceinline__ const T* state_of(int head, int row) const {
    const int stream = row / window[head], age = cached - window[head] + row % window[head];
    return age < 0 || stream >= streams ? nullptr : cache + (std::int64_t{stream} * cached + age) * width;
  }
};

/// Goes through the positions of a head that are cached, stream by stream. It keeps where their rows begin, as finding
/// them anew takes more instructions than multiplying them.
template <class T>
class CachedPositions {
 public:
  __device__ CachedPositions(const PastCall<T>& call, int head, int number)
      : used_(call.used[head]),
        place_(number % used_),
        next_state_(std::int64_t{call.cached - used_} * call.width),
        next_row_(std::int64_t{call.window[head] - used_} * call.depth) {
    const std::int64_t streams = number / used_ + 1;  // up to the position's own
    state_ = call.cache + (streams * call.cached - used_ + place_) * call.width;
    packed_row_ = call.packed_row(head, streams * call.window[head] - used_ + place_);
  }
  __device__ __forceinline__ void advance(const PastCall<T>& call, int positions) {
    place_ += positions;
    state_ += std::int64_t{positions} * call.width;
    packed_row_ += std::int64_t{positions} * call.depth;
    while (place_ >= used_) {
      place_ -= used_;
      state_ += next_state_;
      packed_row_ += next_row_;
    }
  }
  __device__ __forceinline__ const T* state() const { return state_; }
  __device__ __forceinline__ std::int64_t packed_row() const { return packed_row_; }  ///< in y and dy, in elements

 private:
  int used_, place_;
  std::int64_t next_state_, next_row_;  // what a new stream adds
  const T* state_;
  std::int64_t packed_row_;
};

/// Whether any of a head's positions first, ..., first + count - 1 is cached, all of its window counted.
template <class T>
__device__ __forceinline__ bool any_cached(const PastCall<T>& call, int head, int first, int count) {
  const int missing = call.window[head] - call.used[head], place = first % call.window[head];
  return call.used[head] > 0 && (place >= missing || place + count > missing);
}

/// Where the gradient's blocks of one head leave their sums: share by share, [2 D, width] each.
struct PastShares {
  std::int64_t first[kMostPastHeads];  ///< element
  int count[kMostPastHeads];
  int positions;  ///< of a share
};

/// What a block of the gradient makes: Tile::kRows rows of a head's weights, keys' before values', Tile::kColumns of
/// their columns, summed over a share of the head's positions.
template <class Tile>
struct GradientPart {
  int head, row0, column0;
  int begin, end;     ///< of the share: numbers of cached positions, stream by stream
  std::int64_t sums;  ///< where the share's begin, in elements

  template <class T>
  __device__ GradientPart(const PastCall<T>& call, const PastShares& shares) {
    const int block = static_cast<int>(blockIdx.x);
    head = call.head_of(block);
    const int part = block - call.first_block[head];
    const int row_tiles = (2 * call.depth + Tile::kRows - 1) / Tile::kRows;
    const int column_tiles = (call.width + Tile::kColumns - 1) / Tile::kColumns;
    row0 = part % row_tiles * Tile::kRows;
    column0 = part / row_tiles % column_tiles * Tile::kColumns;
    const int share = part / row_tiles / column_tiles, all = call.streams * call.used[head];
    begin = share * shares.positions;
    end = begin + shares.positions < all ? begin + shares.positions : all;
    sums = shares.first[head] + std::int64_t{share} * 2 * call.depth * call.width;
  }
};

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
