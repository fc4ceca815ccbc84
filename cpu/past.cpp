#include "core/kernels/past.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "cpu/parallel.hpp"
#include "cpu/rounded_gemm.hpp"
#include "cpu/vec.hpp"

namespace engram::cpu {
namespace {

constexpr std::int64_t kRowChunk = 256;     // past positions projected by one work item
constexpr std::int64_t kColumnChunk = 128;  // columns of the weight gradient computed by one work item

// Heads by decreasing window, so that the longest work starts first.
std::pmr::vector<int> longest_first(Step& step, const HeadWindows& windows) {
  std::pmr::vector<int> order(static_cast<std::size_t>(windows.heads()), step.objects());
  std::iota(order.begin(), order.end(), 0);
  // By number among equals: a stable sort would take memory.
  std::ranges::sort(order, std::less<>(),
                    [&](int head) { return std::pair(-windows.window[std::size_t(head)], head); });
  return order;
}

void project_past_forward(Step& step, const Tensor& cache, const Tensor& key_weight, const Tensor& value_weight,
                          const HeadWindows& windows, Tensor& keys, Tensor& values) {
  dispatch_float(keys.dtype(), "project_past", [&]<class T>() {
    const std::int64_t streams = cache.shape()[0], cached = cache.shape()[1], width = cache.shape()[2];
    const std::int64_t depth = keys.shape()[-1];
    struct Item {
      int head;
      std::int64_t stream, begin, end;  // rows of the head's window
    };
    std::pmr::vector<Item> items(step.objects());
    for (const int head : longest_first(step, windows)) {
      const std::int64_t window = windows.window[std::size_t(head)];
      for (std::int64_t stream = 0; stream < streams; ++stream)
        for (std::int64_t begin = 0; begin < window; begin += kRowChunk)
          items.push_back({head, stream, begin, std::min(window, begin + kRowChunk)});
    }
    const RoundingMemory rounding(step, kRowChunk, depth, width, max_threads());
    if (!step.computes()) return;
    parallel_items_on_threads(static_cast<std::int64_t>(items.size()), [&](std::int64_t index, int thread) {
      const auto [head, stream, begin, end] = items[static_cast<std::size_t>(index)];
      const std::int64_t window = windows.window[std::size_t(head)];
      // Row r of the window is cached position cached - window + r; before position 0 there are zero vectors.
      const std::int64_t present = std::clamp(window - cached, begin, end);
      for (const auto& [weight, y] : {std::pair{&key_weight, &keys}, std::pair{&value_weight, &values}}) {
        T* rows = y->template data<T>() + (streams * windows.first[std::size_t(head)] + stream * window) * depth;
        std::fill(rows + begin * depth, rows + present * depth, T(0));
        if (present == end) continue;
        gemm(Gemm<T>{.transpose_b = Transpose::yes,
                     .m = end - present,
                     .n = depth,
                     .k = width,
                     .a = cache.data<const T>() + (stream * cached + cached - window + present) * width,
                     .a_stride = width,
                     .b = weight->template data<const T>() + head * depth * width,
                     .b_stride = width,
                     .c = rows + present * depth,
                     .c_stride = depth},
             rounding.of_thread(thread));
      }
    });
  });
}

void project_past_backward(Step& step, const Tensor& cache, const HeadWindows& windows, const Tensor& dkeys,
                           const Tensor& dvalues, const Target& dkey_weight, const Target& dvalue_weight) {
  const Tensor& given = dkeys ? dkeys : dvalues;
  dispatch_float(given.dtype(), "project_past", [&]<class T>() {
    const std::int64_t streams = cache.shape()[0], cached = cache.shape()[1], width = cache.shape()[2];
    const std::int64_t depth = given.shape()[-1];
    const std::pmr::vector<int> order = longest_first(step, windows);
    const std::int64_t column_chunks = (width + kColumnChunk - 1) / kColumnChunk;
    // States whose rows collide are copied once for all heads, stream by stream.
    const bool copies = rows_collide<T>(width) && step.products() == ProductPrecision::f32;
    const std::int64_t reached = std::min<std::int64_t>(windows.longest, cached),
                       stride = copies ? apart(width) : width;
    const Workspace copied =
        step.workspace(copies ? static_cast<std::size_t>(reached * stride) * sizeof(T) : std::size_t{0});
    const RoundingMemory rounding(step, depth, kColumnChunk, std::max<std::int64_t>(1, reached), max_threads());
    if (!step.computes()) return;
    const std::int64_t together = copies ? 1 : streams;
    for (std::int64_t first = 0; first < streams; first += together) {
      const T* states = cache.data<const T>() + ((first + 1) * cached - reached) * width;
      if (copies) {
        parallel_chunks(reached, row_chunk(width), [&](std::int64_t begin, std::int64_t end) {
          copy_rows(states + begin * width, width, end - begin, width, copied.data<T>() + begin * stride, stride);
        });
        states = copied.data<const T>();
      }
      parallel_items_on_threads(windows.heads() * column_chunks, [&](std::int64_t item, int thread) {
        const auto head = std::size_t(order[static_cast<std::size_t>(item / column_chunks)]);
        const std::int64_t column = item % column_chunks * kColumnChunk;
        const std::int64_t columns = std::min(kColumnChunk, width - column);
        const std::int64_t window = windows.window[head], used = std::min(window, cached);
        for (const auto& [dy, dweight] : {std::pair{&dkeys, &dkey_weight}, std::pair{&dvalues, &dvalue_weight}}) {
          if (!*dweight) continue;
          T* target = dweight->template data<T>() + static_cast<std::int64_t>(head) * depth * width + column;
          if (dweight->write == Write::set && first == 0)
            for (std::int64_t r = 0; r < depth; ++r) std::fill_n(target + r * width, columns, T(0));
          for (std::int64_t stream = first; stream < first + together && used > 0; ++stream)
            gemm(Gemm<T>{.transpose_a = Transpose::yes,
                         .m = depth,
                         .n = columns,
                         .k = used,
                         .a = dy->template data<const T>() +
                              (streams * windows.first[head] + (stream + 1) * window - used) * depth,
                         .a_stride = depth,
                         .b = states + ((stream - first) * cached + reached - used) * stride + column,
                         .b_stride = stride,
                         .write = Write::add,
                         .c = target,
                         .c_stride = width},
                 rounding.of_thread(thread));
        }
      });
    }
  });
}

void append_past(Step&, const Tensor& block, std::int64_t count, const HeadWindows& windows, Tensor& ring) {
  dispatch_float(block.dtype(), "append_past", [&]<class T>() {
    const std::int64_t streams = block.shape()[0], length = block.shape()[1], width = block.shape()[2];
    const std::int64_t depth = ring.shape()[-1];
    parallel_items(streams * windows.heads(), [&](std::int64_t item) {
      const std::int64_t stream = item / windows.heads();
      const auto head = static_cast<std::size_t>(item % windows.heads());
      const std::int64_t window = windows.window[head];
      T* rows = ring.data<T>() + (streams * windows.first[head] + stream * window) * depth;
      for (std::int64_t m = std::max<std::int64_t>(0, length - window); m < length; ++m)
        std::copy_n(block.data<const T>() + (stream * length + m) * width + static_cast<std::int64_t>(head) * depth,
                    depth, rows + (count + m) % window * depth);
    });
  });
}

void shift_cache(Step&, const Tensor& cache, const Tensor& block, Tensor& y) {
  const std::int64_t cached = cache.shape()[1], length = block.shape()[1], kept = y.shape()[1];
  const std::size_t row = static_cast<std::size_t>(block.shape()[2]) * size_of(block.dtype());
  parallel_items(block.shape()[0], [&](std::int64_t stream) {
    const auto* old = static_cast<const std::byte*>(cache.raw()) + static_cast<std::size_t>(stream * cached) * row;
    const auto* fresh = static_cast<const std::byte*>(block.raw()) + static_cast<std::size_t>(stream * length) * row;
    auto* out = static_cast<std::byte*>(y.raw()) + static_cast<std::size_t>(stream * kept) * row;
    const std::int64_t from_block = std::min(kept, length), from_cache = std::min(kept - from_block, cached);
    const std::int64_t missing = kept - from_block - from_cache;
    const auto bytes = [row](std::int64_t rows) { return static_cast<std::size_t>(rows) * row; };
    std::memset(out, 0, bytes(missing));
    if (from_cache > 0) std::memcpy(out + bytes(missing), old + bytes(cached - from_cache), bytes(from_cache));
    std::memcpy(out + bytes(missing + from_cache), fresh + bytes(length - from_block), bytes(from_block));
  });
}

const bool bound =
    kernels::project_past_forward.bind(DeviceKind::cpu, &project_past_forward, KernelMemory::workspace) &&
    kernels::project_past_backward.bind(DeviceKind::cpu, &project_past_backward, KernelMemory::workspace) &&
    kernels::append_past.bind(DeviceKind::cpu, &append_past) &&
    kernels::shift_cache.bind(DeviceKind::cpu, &shift_cache);

}  // namespace
}  // namespace engram::cpu
