#include "core/kernels/past.hpp"

#include <algorithm>

#include "cuda/elements.cuh"

namespace engram::cuda::past_kernels {
namespace {

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
      const std::int64_t window = windows.window[head], taken = std::min(window, length);
      const AppendRing<T> body{
          block.data<const T>() + static_cast<std::int64_t>(head) * depth, length, width, depth, taken, window, count,
          ring.data<T>() + streams * windows.first[head] * depth};
      const bool in_packs =
          aligned_for_packs(body.block, body.ring) && depth % kPackWidth<T> == 0 && width % kPackWidth<T> == 0;
      for_each_element<T>(step, streams * taken * depth, in_packs, body);
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

const bool bound =
    kernels::append_past.bind(kThisDevice, &append_past) && kernels::shift_cache.bind(kThisDevice, &shift_cache);

}  // namespace
}  // namespace engram::cuda::past_kernels
