#pragma once
/// The rows of attention's plain form: scores of one head against all of its past and the whole block lie in matrices,
/// made by library products; a block of threads turns each row into weights, or into gradients of scores. What lies
/// outside of a query's window gets weight 0. Formulas: core/kernels/attention.hpp.

#include <cmath>

#include "core/kernels/attention.hpp"
#include "core/rules/span_mask.hpp"
#include "cuda/ordered_sum.cuh"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// What the rows of one head know of the call.
template <class T>
struct HeadRows {
  std::int64_t block, heads, head, depth, width;
  std::int64_t window, slots;  ///< positions before the query; places of its band
  std::int64_t columns;        ///< of the block: block, or 0 without any context
  std::int64_t persistent, past_count;
  std::int64_t min_distance, max_distance, mask_offset;
  double ramp;  ///< 0: no mask
  RampGradient ramp_gradient;
  bool position_keys, position_values, drops;
  DropoutRule dropout;
  RandomStream random;
  std::int64_t dropout_reach, dropout_stride;
  const T* span;                   ///< zeta of this head, of its first query where every query has its own
  std::int64_t span_stride;        ///< from one query to the next: 0, or heads
  const std::int32_t* past_valid;  ///< of every stream; nullptr: all positions exist

  /// Of the query of a row, before clamping; above 1 without a mask.
  __device__ double raw_mask(std::int64_t row, std::int64_t distance) const {
    if (ramp == 0) return 2;
    return span_ramp(static_cast<double>(span[row * span_stride]) * static_cast<double>(max_distance),
                     static_cast<double>(distance - 1 + mask_offset), ramp);
  }
  /// Whether a place on the ramp passes gradient to the span.
  __device__ bool is_corner(double raw) const {
    if (ramp == 0 || raw < 0 || raw > 1) return false;
    return (raw > 0 || ramp_gradient != RampGradient::open) && (raw < 1 || ramp_gradient == RampGradient::inclusive);
  }
  __device__ T multiplier(std::int64_t row, std::int64_t place) const {
    if (!drops) return T(1);
    const std::int64_t stream = row / block, query = row % block;
    const auto element = static_cast<std::uint64_t>(((stream * heads + head) * block + query) * dropout_stride + place);
    const PhiloxBlock bits = random.draw(element / DropoutRule::kElementsPerBlock);
    return dropout.keeps(bits, static_cast<int>(element % DropoutRule::kElementsPerBlock))
               ? static_cast<T>(dropout.multiplier)
               : T(0);
  }
};

/// Scores, weights or gradients of one head: row b * block + m of each matrix belongs to query m of stream b.
template <class T>
struct HeadMatrices {
  T* past;        ///< [rows, window], columns as the past is stored
  T* here;        ///< [rows, columns]
  T* persistent;  ///< [rows, persistent]
  T* position;    ///< [rows, slots], by distance: what belongs to the position tables
};

/// Threads for one row, a function of its length alone: a warp for short ones.
inline constexpr int kShortRowThreads = 32, kLongRowThreads = 128;
inline constexpr std::int64_t kLongestShortRow = 256;

/// Calls body(place of the element in its matrix, whether that is the past's, distance) for the columns of a row that
/// are this thread's; the distance is -1 where the query cannot look: outside of its window, or before the first
/// position that exists.
template <int kThreads, class T, class Body>
__device__ __forceinline__ void for_context(const HeadRows<T>& head, std::int64_t row, Body body) {
  const std::int64_t query = row % head.block;
  const std::int64_t exists = head.past_valid == nullptr ? head.window : head.past_valid[row / head.block];
  for (std::int64_t column = threadIdx.x; column < head.window + head.columns; column += kThreads) {
    const bool in_past = column < head.window;
    // Positions count from the start of the block; a ring's oldest row is the next to be replaced.
    const std::int64_t position =
        in_past ? (column + head.window - head.past_count % head.window) % head.window - head.window
                : column - head.window;
    const std::int64_t distance = query - position;
    const bool seen = distance >= head.min_distance && distance <= head.window && position >= -exists;
    body(in_past ? row * head.window + column : row * head.columns + position, in_past, seen ? distance : -1);
  }
}

/// matrices.position of one row from the columns of its context, 0 where there is none. For all threads of the block.
template <int kThreads, class T>
__device__ __forceinline__ void gather_by_distance(const HeadRows<T>& head, const HeadMatrices<T>& matrices,
                                                   std::int64_t row) {
  // Every distance has one column, except before the first position that exists.
  T* const to = matrices.position + row * head.slots;
  __syncthreads();
  for (std::int64_t i = threadIdx.x; i < head.slots; i += kThreads) to[i] = 0;
  __syncthreads();
  for_context<kThreads>(head, row, [&](std::int64_t at, bool in_past, std::int64_t distance) {
    if (distance >= 0) to[distance - head.min_distance] = (in_past ? matrices.past : matrices.here)[at];
  });
}

/// Scores -> weights times dropout, also by distance where values have positions; lse of the head's rows at its place
/// in [B, H, M]. kept: the head's rows of what kernels::attention_forward keeps, [rows, persistent + slots], or
/// nullptr.
template <int kThreads, class T>
__global__ void __launch_bounds__(kThreads) weigh_rows(HeadRows<T> head, HeadMatrices<T> scores, T* lse, T* kept) {
  const std::int64_t row = blockIdx.x;
  T* const kept_slots = kept == nullptr ? nullptr : kept + row * (head.persistent + head.slots);
  T* const kept_window = kept == nullptr ? nullptr : kept_slots + head.persistent;  // oldest first
  T top = -static_cast<T>(INFINITY);
  for_context<kThreads>(head, row, [&](std::int64_t at, bool in_past, std::int64_t distance) {
    if (distance < 0 || head.raw_mask(row, distance) <= 0) return;
    T& score = (in_past ? scores.past : scores.here)[at];
    if (head.position_keys) score += scores.position[row * head.slots + distance - head.min_distance];
    top = Maximum{}(top, score);
  });
  T* const persistent = scores.persistent + row * head.persistent;
  for (std::int64_t n = threadIdx.x; n < head.persistent; n += kThreads) top = Maximum{}(top, persistent[n]);
  top = block_maximum<kThreads>(top);
  const bool sees_nothing = top == -static_cast<T>(INFINITY);

  if (kept != nullptr) {
    // Places before the first position that exists have no column.
    for (std::int64_t i = threadIdx.x; i < head.slots; i += kThreads) kept_window[i] = 0;
    __syncthreads();
  }
  T sum = 0;
  for_context<kThreads>(head, row, [&](std::int64_t at, bool in_past, std::int64_t distance) {
    T& score = (in_past ? scores.past : scores.here)[at];
    const double raw = distance < 0 ? 0 : head.raw_mask(row, distance);
    const T unmasked = raw <= 0 ? T(0) : std::exp(score - top);
    if (kept != nullptr && distance >= 0) kept_window[head.window - distance] = unmasked;
    score = raw <= 0 ? T(0) : static_cast<T>(raw < 1 ? raw : 1) * unmasked;
    sum += score;
  });
  for (std::int64_t n = threadIdx.x; n < head.persistent; n += kThreads) {
    persistent[n] = std::exp(persistent[n] - top);
    sum += persistent[n];
  }
  sum = block_sum<kThreads>(sum);
  const T factor = sees_nothing ? T(0) : T(1) / sum;
  const auto signed_factor = [factor](T multiplier) { return multiplier == T(0) ? -factor : factor; };
  for_context<kThreads>(head, row, [&](std::int64_t at, bool in_past, std::int64_t distance) {
    if (distance < 0) return;
    const T multiplier = head.multiplier(row, head.max_distance - distance);
    (in_past ? scores.past : scores.here)[at] *= factor * multiplier;
    if (kept != nullptr) kept_window[head.window - distance] *= signed_factor(multiplier);
  });
  for (std::int64_t n = threadIdx.x; n < head.persistent; n += kThreads) {
    const T multiplier = head.multiplier(row, head.dropout_reach + n);
    if (kept != nullptr) kept_slots[n] = persistent[n] * signed_factor(multiplier);
    persistent[n] *= factor * multiplier;
  }
  if (head.position_values) gather_by_distance<kThreads>(head, scores, row);
  if (threadIdx.x == 0)
    lse[(row / head.block * head.heads + head.head) * head.block + row % head.block] =
        sees_nothing ? top : top + std::log(sum);
}

/// `scores` -> weights times dropout, `gradients` from gradients of these to gradients of scores. Their `position` goes
/// from the key table's scores and the value table's share of the gradients to the same by distance. dspan[row]: the
/// row's share of the span's gradient, without S / R.
template <int kThreads, class T>
__global__ void __launch_bounds__(kThreads)
    score_gradients(HeadRows<T> head, HeadMatrices<T> scores, HeadMatrices<T> gradients, const T* out, const T* dout,
                    const T* lse, double* dspan) {
  const std::int64_t row = blockIdx.x;
  const T row_lse = lse[(row / head.block * head.heads + head.head) * head.block + row % head.block];
  const bool sees_nothing = row_lse == -static_cast<T>(INFINITY);
  T total = 0;
  const std::int64_t first = row * head.width + head.head * head.depth;
  for (std::int64_t i = threadIdx.x; i < head.depth; i += kThreads) total += dout[first + i] * out[first + i];
  total = block_sum<kThreads>(total);

  double of_span = 0;
  for_context<kThreads>(head, row, [&](std::int64_t at, bool in_past, std::int64_t distance) {
    T& weight = (in_past ? scores.past : scores.here)[at];
    T& gradient = (in_past ? gradients.past : gradients.here)[at];
    T score = weight, dscore = 0;
    weight = 0;
    if (distance >= 0 && !sees_nothing) {
      const double raw = head.raw_mask(row, distance);
      const std::int64_t place = row * head.slots + distance - head.min_distance;
      if (head.position_keys) score += scores.position[place];
      if (head.position_values) gradient += gradients.position[place];
      const T multiplier = head.multiplier(row, head.max_distance - distance);
      const T excess = multiplier * gradient - total;
      if (head.is_corner(raw)) {
        const T exponent = score - row_lse < T(18) ? score - row_lse : T(18);
        of_span += static_cast<double>(std::exp(exponent) * excess);
      }
      if (raw > 0) {
        const T share = static_cast<T>(raw < 1 ? raw : 1) * std::exp(score - row_lse);
        dscore = share * excess;
        weight = share * multiplier;
      }
    }
    gradient = dscore;
  });
  if (head.position_keys) gather_by_distance<kThreads>(head, gradients, row);
  if (head.position_values) gather_by_distance<kThreads>(head, scores, row);
  for (std::int64_t n = threadIdx.x; n < head.persistent; n += kThreads) {
    T& weight = scores.persistent[row * head.persistent + n];
    T& gradient = gradients.persistent[row * head.persistent + n];
    const T share = std::exp(weight - row_lse), multiplier = head.multiplier(row, head.dropout_reach + n);
    gradient = share * (multiplier * gradient - total);
    weight = share * multiplier;
  }
  of_span = block_sum<kThreads>(of_span);
  if (threadIdx.x == 0) dspan[row] = of_span;
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
