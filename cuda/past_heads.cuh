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
  /// The row of a weight that makes a column of the head; null beyond the last.
  __device__ __forceinline__ const T* weight_row(int head, int column) const {
    if (column >= 2 * depth) return nullptr;
    const int values = column >= depth ? 1 : 0;
    return weight[values] + (static_cast<std::int64_t>(first_head + head) * depth + column - values * depth) * width;
  }
  /// Of the head's row number `row` in `of`, y or dy, this column; null where there is none.
  template <class U>
  __device__ __forceinline__ U* element(U* const (&of)[2], int head, std::int64_t row, int column) const {
    const int values = column >= depth ? 1 : 0;
    if (column >= 2 * depth || of[values] == nullptr) return nullptr;
    return of[values] + (first_row[head] + row) * depth + column - values * depth;
  }
};

/// Goes through positions of all streams, stream by stream: of a head's window the last `length`.
class PastPositions {
 public:
  template <class T>
  __device__ PastPositions(const PastCall<T>& call, int head, int length, int number)
      : cached_(call.cached), window_(call.window[head]), length_(length), count_(call.streams * length) {
    number_ = number;
    stream_ = number / length;
    place_ = number % length;
  }
  __device__ __forceinline__ void advance(int positions) {
    number_ += positions;
    place_ += positions;
    while (place_ >= length_) {
      place_ -= length_;
      ++stream_;
    }
  }
  __device__ __forceinline__ bool exists() const { return number_ < count_; }
  /// The state of the position in a cache of rows of `width`; null for one that is not cached.
  template <class T>
  __device__ __forceinline__ const T* state(const PastCall<T>& call) const {
    const int age = cached_ - length_ + place_;
    return age < 0 || !exists() ? nullptr : call.cache + (std::int64_t{stream_} * cached_ + age) * call.width;
  }
  /// Number among the head's rows of the packed past.
  __device__ __forceinline__ std::int64_t row() const {
    return std::int64_t{stream_} * window_ + window_ - length_ + place_;
  }

 private:
  int cached_, window_, length_, count_;
  int number_, stream_, place_;
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

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
