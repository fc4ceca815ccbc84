#include <algorithm>
#include <bit>

#include "core/kernels/row_order.hpp"
#include "cuda/elements.cuh"
#include "cuda/row_sort.hpp"
#include "cuda/warp.cuh"

namespace engram::cuda::row_order_kernels {
namespace {

template <class Key>
struct NumberUses {
  const std::int64_t* ids;
  Key* keys;
  std::int32_t* uses;

  template <int kWidth>
  __device__ void run(std::int64_t i) const {
    keys[i] = static_cast<Key>(ids[i]);
    uses[i] = static_cast<std::int32_t>(i);
  }
};

constexpr int kOrderThreads = 256;
constexpr int kOrderWarps = kOrderThreads / kWarpLanes;
constexpr std::int64_t kChunk = 8 * kOrderThreads;  // places of a block

/// How many of `mine` the threads before this one have; `total` is that of the whole block. `of_warps` is shared.
__device__ __forceinline__ std::int32_t before_this_thread(std::int32_t mine, std::int32_t (&of_warps)[kOrderWarps],
                                                           std::int32_t& total) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes, warp = static_cast<int>(threadIdx.x) / kWarpLanes;
  std::int32_t sum = mine;
  for (int distance = 1; distance < kWarpLanes; distance *= 2) {
    const std::int32_t below = __shfl_up_sync(kAllLanes, sum, distance);
    if (lane >= distance) sum += below;
  }
  __syncthreads();  // what an earlier call left may still be read
  if (lane == kWarpLanes - 1) of_warps[warp] = sum;
  __syncthreads();
  std::int32_t before = sum - mine;
  total = 0;
  for (int w = 0; w < kOrderWarps; ++w) {
    if (w < warp) before += of_warps[w];
    total += of_warps[w];
  }
  return before;
}

template <class Key>
__device__ __forceinline__ std::int32_t begins_row(const Key* keys, std::int64_t place, std::int64_t count) {
  return place < count && (place == 0 || keys[place] != keys[place - 1]) ? 1 : 0;
}

/// before[chunk] = the rows that begin in the chunk.
template <class Key>
__global__ void __launch_bounds__(kOrderThreads)
    count_rows_of_chunk(const Key* keys, std::int64_t count, std::int32_t* before) {
  __shared__ std::int32_t of_warps[kOrderWarps];
  std::int32_t mine = 0, total = 0;
  const std::int64_t first = blockIdx.x * kChunk + threadIdx.x;
  for (std::int64_t place = first; place < first + kChunk; place += kOrderThreads)
    mine += begins_row(keys, place, count);
  before_this_thread(mine, of_warps, total);
  if (threadIdx.x == 0) before[blockIdx.x] = total;
}

/// In one block: before[chunk] = the rows that begin before the chunk.
__global__ void __launch_bounds__(kOrderThreads)
    add_up_chunks(std::int64_t chunks, std::int32_t* before, std::int64_t* rows) {
  __shared__ std::int32_t of_warps[kOrderWarps];
  std::int32_t sum = 0;
  for (std::int64_t base = 0; base < chunks; base += kOrderThreads) {
    const std::int64_t chunk = base + threadIdx.x;
    const std::int32_t mine = chunk < chunks ? before[chunk] : 0;
    std::int32_t total = 0;
    const std::int32_t in_block = before_this_thread(mine, of_warps, total);
    if (chunk < chunks) before[chunk] = sum + in_block;
    sum += total;
  }
  if (threadIdx.x == 0) rows[0] = sum;
}

template <class Key>
__global__ void __launch_bounds__(kOrderThreads)
    write_rows(const Key* keys, std::int64_t count, const std::int32_t* before, std::int64_t* rows,
               std::int32_t* starts) {
  __shared__ std::int32_t of_warps[kOrderWarps];
  std::int32_t row = before[blockIdx.x];
  const std::int64_t first = blockIdx.x * kChunk + threadIdx.x;
  for (std::int64_t place = first; place < first + kChunk; place += kOrderThreads) {
    const std::int32_t mine = begins_row(keys, place, count);
    std::int32_t total = 0;
    const std::int32_t in_block = before_this_thread(mine, of_warps, total);
    if (mine != 0) {
      rows[row + in_block] = static_cast<std::int64_t>(keys[place]);
      starts[row + in_block] = static_cast<std::int32_t>(place);
    }
    row += total;
  }
}

/// What is behind the last row.
struct FillRest {
  const std::int64_t* distinct;
  std::int64_t capacity;
  std::int32_t count;
  std::int64_t* rows;
  std::int32_t* starts;

  template <int kWidth>
  __device__ void run(std::int64_t i) const {
    if (i < distinct[0]) return;
    starts[i] = count;
    if (i < capacity) rows[i] = -1;
  }
};

struct StampRow {
  const StepScalars* scalars;
  const std::int64_t* distinct;
  const std::int64_t* rows;
  std::int32_t* stamps;

  template <int kWidth>
  __device__ void run(std::int64_t u) const {
    if (u < distinct[0]) stamps[rows[u]] = static_cast<std::int32_t>(scalars->step + 1);
  }
};

template <class Key>
void order_uses(Step& step, const std::int64_t* ids, std::int64_t count, int bits, RowOrder& order) {
  const auto keys_bytes = static_cast<std::size_t>(count) * sizeof(Key);
  const Workspace keys = step.workspace(keys_bytes), sorted = step.workspace(keys_bytes);
  {
    const Workspace uses = step.workspace(static_cast<std::size_t>(count) * sizeof(std::int32_t));
    launch_elements<1>(step, count, NumberUses<Key>{ids, keys.data<Key>(), uses.data<std::int32_t>()});
    sort_by_row(step, RowSort<Key>{.count = count,
                                   .bits = bits,
                                   .keys = keys.data<const Key>(),
                                   .uses = uses.data<const std::int32_t>(),
                                   .sorted_keys = sorted.data<Key>(),
                                   .sorted_uses = order.uses.data<std::int32_t>()});
  }
  const std::int64_t chunks = (count + kChunk - 1) / kChunk, capacity = order.rows.count();
  const Workspace memory = step.workspace(static_cast<std::size_t>(chunks) * sizeof(std::int32_t));
  std::int32_t* before = memory.data<std::int32_t>();
  std::int64_t* distinct = order.count.data<std::int64_t>();
  std::int64_t* rows = order.rows.data<std::int64_t>();
  std::int32_t* starts = order.starts.data<std::int32_t>();
  const Key* in_order = sorted.data<const Key>();
  launch(step, {.blocks = chunks, .threads = kOrderThreads}, count_rows_of_chunk<Key>, in_order, count, before);
  launch(step, {.blocks = 1, .threads = kOrderThreads}, add_up_chunks, chunks, before, distinct);
  launch(step, {.blocks = chunks, .threads = kOrderThreads}, write_rows<Key>, in_order, count, before, rows, starts);
  launch_elements<1>(step, capacity + 1, FillRest{distinct, capacity, static_cast<std::int32_t>(count), rows, starts});
}

void order_row_uses(Step& step, const Tensor& ids, std::int64_t table_rows, RowOrder& order) {
  const std::int64_t* rows = ids.data<const std::int64_t>();
  const int bits = std::max(
      1, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(0, table_rows - 1)))));
  if (bits <= 32)
    order_uses<std::uint32_t>(step, rows, ids.count(), bits, order);
  else
    order_uses<std::uint64_t>(step, rows, ids.count(), bits, order);
}

void stamp_rows(Step& step, const RowOrder& order, Tensor& stamps) {
  launch_elements<1>(step, order.rows.count(),
                     StampRow{step.scalars(), order.count.data<const std::int64_t>(),
                              order.rows.data<const std::int64_t>(), stamps.data<std::int32_t>()});
}

const bool bound =
    kernels::order_row_uses.bind(kThisDevice, &order_row_uses) && kernels::stamp_rows.bind(kThisDevice, &stamp_rows);

}  // namespace
}  // namespace engram::cuda::row_order_kernels
