#include "core/kernels/past.hpp"

#include <algorithm>

#include "cuda/summed_product.cuh"

namespace engram::cuda::past_kernels {
namespace {

/// Zeros in runs of `length` elements, `stride` apart.
template <class T>
struct ClearRuns {
  T* y;
  std::int64_t stride, length;

  template <int kWidth>
  __device__ void run(std::int64_t i) const {
    store(y + i / length * stride + i % length, Pack<Compute<T>, kWidth>{});
  }
};

template <class T>
void clear_runs(Step& step, T* y, std::int64_t runs, std::int64_t stride, std::int64_t length) {
  const bool in_packs = aligned_for_packs(y) && stride % kPackWidth<T> == 0 && length % kPackWidth<T> == 0;
  for_each_element<T>(step, runs * length, in_packs, ClearRuns<T>{y, stride, length});
}

/// What the products of one head meet.
struct HeadPast {
  std::int64_t window, used;  // positions; those that are cached
  std::int64_t first_row;     // of the head in the packed past

  HeadPast(const HeadWindows& windows, std::size_t head, std::int64_t streams, std::int64_t cached)
      : window(windows.window[head]), used(std::min(window, cached)), first_row(streams * windows.first[head]) {}
};

void project_past_forward(Step& step, const Tensor& cache, const Tensor& weight, const HeadWindows& windows,
                          Tensor& y) {
  dispatch_storage(y.dtype(), "project_past", [&]<class T>() {
    const std::int64_t streams = cache.shape()[0], cached = cache.shape()[1], width = cache.shape()[2];
    const std::int64_t depth = y.shape()[-1];
    for (std::size_t head = 0; head < windows.window.size(); ++head) {
      const HeadPast past(windows, head, streams, cached);
      const std::int64_t missing = past.window - past.used;
      T* const rows = y.data<T>() + past.first_row * depth;
      clear_runs(step, rows, streams, past.window * depth, missing * depth);
      if (past.used > 0)
        multiply(step, Product<T>{.m = past.used,
                                  .n = depth,
                                  .k = width,
                                  .batch = streams,
                                  .a = {cache.data<const T>() + (cached - past.used) * width, width, cached * width},
                                  .b = {weight.data<const T>() + static_cast<std::int64_t>(head) * depth * width, width,
                                        0, true},
                                  .c = rows + missing * depth,
                                  .row_stride = depth,
                                  .batch_stride = past.window * depth});
    }
  });
}

void project_past_backward(Step& step, const Tensor& cache, const HeadWindows& windows, const Tensor& dy,
                           const Target& dweight) {
  dispatch_storage(dy.dtype(), "project_past", [&]<class T>() {
    using Sum = Compute<T>;  // the weight is a parameter: its gradient is not bf16
    const std::int64_t streams = cache.shape()[0], cached = cache.shape()[1], width = cache.shape()[2];
    const std::int64_t depth = dy.shape()[-1];
    for (std::size_t head = 0; head < windows.window.size(); ++head) {
      const HeadPast past(windows, head, streams, cached);
      Sum* const target = dweight.data<Sum>() + static_cast<std::int64_t>(head) * depth * width;
      if (past.used == 0) {
        if (dweight.write == Write::set) clear_runs(step, target, 1, 0, depth * width);
        continue;
      }
      const T* const rows = dy.data<const T>() + (past.first_row + past.window - past.used) * depth;
      // A batch stride of 0: the sum over the streams, in order.
      const Product<T, Sum> product{.m = depth,
                                    .n = width,
                                    .k = past.used,
                                    .batch = streams,
                                    .a = {rows, depth, past.window * depth, true},
                                    .b = {cache.data<const T>() + (cached - past.used) * width, width, cached * width},
                                    .write = dweight.write,
                                    .c = target,
                                    .row_stride = width};
      // Where streams follow each other in both, the library sees one long product.
      const bool follow = past.used == past.window && past.used == cached;
      if (streams == 1 || follow)
        multiply(step, product);
      else
        multiply_summed(step, product);
    }
  });
}

/// The last `taken` positions of a block into one head's rings.
template <class T>
struct AppendRing {
  const T* block;  // of the head's first column
  std::int64_t length, width, depth;
  std::int64_t taken, window, count;
  T* ring;  // of the head

  template <int kWidth>
  __device__ void run(std::int64_t i) const {
    const std::int64_t row = i / depth, place = i % depth;
    const std::int64_t stream = row / taken, position = length - taken + row % taken;
    store(ring + (stream * window + (count + position) % window) * depth + place,
          load<kWidth>(block + (stream * length + position) * width + place));
  }
};

void append_past(Step& step, const Tensor& block, std::int64_t count, const HeadWindows& windows, Tensor& ring) {
  dispatch_storage(block.dtype(), "append_past", [&]<class T>() {
    const std::int64_t streams = block.shape()[0], length = block.shape()[1], width = block.shape()[2];
    const std::int64_t depth = ring.shape()[-1];
    for (std::size_t head = 0; head < windows.window.size(); ++head) {
      const HeadPast past(windows, head, streams, length);
      const AppendRing<T> body{block.data<const T>() + static_cast<std::int64_t>(head) * depth,
                               length,
                               width,
                               depth,
                               past.used,
                               past.window,
                               count,
                               ring.data<T>() + past.first_row * depth};
      const bool in_packs =
          aligned_for_packs(body.block, body.ring) && depth % kPackWidth<T> == 0 && width % kPackWidth<T> == 0;
      for_each_element<T>(step, streams * past.used * depth, in_packs, body);
    }
  });
}

template <class T>
struct ShiftCache {
  const T *cache, *block;
  std::int64_t cached, length, kept, width;
  T* y;

  template <int kWidth>
  __device__ void run(std::int64_t i) const {
    const std::int64_t row = i / width, place = i % width, stream = row / kept;
    // Counted from the first cached position; before it there are zeros.
    const std::int64_t position = cached + length - kept + row % kept;
    Pack<Compute<T>, kWidth> value{};
    if (position >= cached)
      value = load<kWidth>(block + (stream * length + position - cached) * width + place);
    else if (position >= 0)
      value = load<kWidth>(cache + (stream * cached + position) * width + place);
    store(y + i, value);
  }
};

void shift_cache(Step& step, const Tensor& cache, const Tensor& block, Tensor& y) {
  const auto shift = [&]<class T>() {
    const ShiftCache<T> body{cache.data<const T>(), block.data<const T>(), cache.shape()[1], block.shape()[1],
                             y.shape()[1],          block.shape()[2],      y.data<T>()};
    const bool in_packs = aligned_for_packs(body.cache, body.block, body.y) && body.width % kPackWidth<T> == 0;
    for_each_element<T>(step, y.count(), in_packs, body);
  };
  if (y.dtype() == DType::i32)  // words
    shift.template operator()<std::int32_t>();
  else
    dispatch_storage(y.dtype(), "shift_cache", shift);
}

const bool bound = kernels::project_past_forward.bind(kThisDevice, &project_past_forward) &&
                   kernels::project_past_backward.bind(kThisDevice, &project_past_backward) &&
                   kernels::append_past.bind(kThisDevice, &append_past) &&
                   kernels::shift_cache.bind(kThisDevice, &shift_cache);

}  // namespace
}  // namespace engram::cuda::past_kernels
