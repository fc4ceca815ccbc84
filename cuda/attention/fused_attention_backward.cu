#include "core/kernels/fill.hpp"
#include "cuda/attention/fused_attention_depth.hpp"
#include "cuda/attention/fused_attention_positions.cuh"
#include "cuda/attention/fused_attention_queries.cuh"
#include "cuda/attention/fused_attention_slots.cuh"
#include "cuda/attention/span_gradient.cuh"
#include "cuda/attention/warpgroup_attention.hpp"
#include "cuda/ordered_sum.cuh"

namespace engram::cuda {
namespace {

/// Numbers the items of all heads, count_of(rank) each.
template <class CountOf>
HeadItems number_items(int heads, CountOf count_of) {
  HeadItems items{};
  for (int rank = 0; rank < heads; ++rank) items.first[rank + 1] = items.first[rank] + static_cast<int>(count_of(rank));
  return items;
}

/// Block h adds up the shares of head h, in order, and writes its span's gradient.
__global__ void __launch_bounds__(kSumThreads)
    sum_span_shares(const double* shares, std::int64_t count, double factor, float* dspan, Write write) {
  const int head = static_cast<int>(blockIdx.x);
  const double sum = sum_in_block(0, count, PartialSum{shares + head * count});
  if (threadIdx.x == 0) StoreSpanGradient<float>{factor, dspan + head, write}(sum);
}

/// One backward pass with heads of kDepth.
template <class T, int kDepth>
struct Backward {
  Step& step;
  const FusedCall<T>& call;
  const T* dout;
  QueryNumbers numbers;
  const AttentionGradients& gradients;

  LaunchSize size(std::int64_t blocks, std::size_t shared_bytes) const {
    return {.blocks = blocks, .threads = kAttentionThreads, .shared_bytes = shared_bytes};
  }
  std::int64_t query_tiles() const { return std::int64_t{call.streams} * call.tiles; }
  bool by_warpgroup() const { return multiplies_by_warpgroups(step); }

  void launch_queries(std::int64_t items, const T* out, const QueryGradients<T>& wanted) const {
    if constexpr (kHasWarpgroupKernels<T, kDepth>)
      if (by_warpgroup()) return WarpgroupAttention{step, call}.queries(out, dout, numbers, wanted);
    launch(step, size(items, query_gradient_bytes<T, kDepth>(call)), query_gradients<T, kDepth, false>, call, out, dout,
           numbers, wanted);
  }
  void queries(const T* out, double span_factor) const {
    const std::int64_t items = call.heads * query_tiles();
    const Workspace shares = step.workspace(sizeof(double) * static_cast<std::size_t>(items));
    launch_queries(items, out, {gradients.content_query, gradients.position_query, shares.data<double>()});
    float* const dspan = gradients.span.data<float>();
    if (dspan == nullptr) return;
    if (call.ramp == 0) return kernels::clear_if_set(step, gradients.span);
    launch(step, {.blocks = call.heads, .threads = kSumThreads}, sum_span_shares, shares.data<const double>(),
           query_tiles(), span_factor, dspan, gradients.span.write);
  }

  void keys() const {
    const AttentionGradients& g = gradients;
    if (call.keys == nullptr || !(g.past_keys || g.past_values || g.keys || g.values)) return;
    const HeadItems items = number_items(call.heads, [&](int rank) {
      return std::int64_t{call.streams} * tiles_of(call.block - first_key(call.table.window[rank]));
    });
    const KeyGradients<T> wanted{g.past_keys, g.past_values, g.keys, g.values};
    if constexpr (kHasWarpgroupKernels<T, kDepth>)
      if (by_warpgroup()) return WarpgroupAttention{step, call}.keys(items, dout, numbers, wanted);
    launch(step, size(items.first[call.heads], key_gradient_bytes<T, kDepth>(call)), key_gradients<T, kDepth, false>,
           call, items, dout, numbers, wanted);
  }

  void launch_wide_slots(const Partials& for_keys, const Partials& for_values) const {
    const std::int64_t items = call.heads * (tiles_of(call.persistent) + 1) / 2 * for_keys.shares[0];
    if constexpr (kHasWideSlots<T, kDepth>)
      launch(step, size(items, wide_slot_gradient_bytes<T, kDepth>()), wide_slot_gradients<T, kDepth>, call, dout,
             numbers, for_keys, for_values);
  }
  void launch_slots(const Partials& for_keys, const Partials& for_values) const {
    if constexpr (kHasWarpgroupKernels<T, kDepth>)
      if (by_warpgroup()) return WarpgroupAttention{step, call}.slots(dout, numbers, for_keys, for_values);
    if (kHasWideSlots<T, kDepth> && are_wide_slots(call.persistent)) return launch_wide_slots(for_keys, for_values);
    launch(step,
           size(call.heads * tiles_of(call.persistent) * for_keys.shares[0],
                GradientMemory<T, kDepth>::bytes(false, false)),
           slot_gradients<T, kDepth, false>, call, dout, numbers, for_keys, for_values);
  }
  void slots() const {
    if (call.persistent == 0 || (!gradients.slot_keys && !gradients.slot_values)) return;
    Partials for_keys{}, for_values{};
    const std::int64_t elements =
        plan_partials(step, for_keys, call.heads, kDepth, query_tiles(), [&](int) { return call.persistent; });
    const Workspace memory = step.workspace(2 * sizeof(float) * static_cast<std::size_t>(elements));
    for_values = for_keys;
    for_keys.data = gradients.slot_keys ? memory.data<float>() : nullptr;
    for_values.data = gradients.slot_values ? memory.data<float>() + elements : nullptr;
    launch_slots(for_keys, for_values);
    finish_partials_into(step, call.table, call.heads, kDepth, for_keys,
                         {call.persistent, kDepth, static_cast<std::int64_t>(call.persistent) * kDepth}, for_keys.data,
                         gradients.slot_keys, for_values.data, gradients.slot_values);
  }

  void positions() const {
    if (!gradients.position_keys || !call.positions) return;
    Partials partials{};
    const std::int64_t elements =
        plan_partials(step, partials, call.heads, kDepth, query_tiles(), [&](int rank) { return call.slots(rank); });
    const Workspace memory = step.workspace(sizeof(float) * static_cast<std::size_t>(elements));
    partials.data = memory.data<float>();
    const HeadItems items = number_items(call.heads, [&](int rank) {
      return call.slots(rank) == 0 ? 0 : tiles_of(call.table.window[rank] + 1) * partials.shares[rank];
    });
    launch(step, size(items.first[call.heads], PositionGradientMemory<T, kDepth>::bytes(call.two_queries)),
           position_gradients<T, kDepth>, call, items, dout, numbers, partials);
    finish_partials_into(
        step, call.table, call.heads, kDepth, partials,
        {gradients.position_keys.tensor.shape()[0], call.position_stride, call.positions_per_head ? kDepth : 0},
        partials.data, gradients.position_keys);
  }
};

}  // namespace

inline namespace ENGRAM_CUDA_DEVICE {

std::size_t fused_backward_shared_bytes(const AttentionInputs& in, const AttentionOptions& options) {
  std::size_t bytes = 0;
  const Tensor& queries = in.content_query;
  dispatch_fused(queries.dtype(), fused_depth_for(queries.shape()[2] / options.heads), [&]<class T, int kDepth>() {
    const FusedCall<T> call(in, options, {});
    // The kernels of keys and of slots take a part of what that of queries takes.
    bytes = query_gradient_bytes<T, kDepth>(call);
    if (call.positions) bytes = std::max(bytes, PositionGradientMemory<T, kDepth>::bytes(call.two_queries));
  });
  return bytes;
}

void fused_attention_backward(Step& step, const AttentionInputs& in, const AttentionOptions& options,
                              RandomStream random, const Tensor& out, const Tensor& lse, const Tensor& dout,
                              const AttentionGradients& gradients) {
  const Workspace totals = step.workspace(sizeof(float) * static_cast<std::size_t>(lse.count()));
  const double span_factor = options.ramp > 0 ? static_cast<double>(options.max_distance) / options.ramp : 0.0;
  dispatch_fused(out.dtype(), out.shape()[2] / options.heads, [&]<class T, int kDepth>() {
    const FusedCall<T> call(in, options, random);
    const Backward<T, kDepth> backward{
        step, call, dout.data<const T>(), {lse.data<const float>(), totals.data<float>()}, gradients};
    backward.queries(out.data<const T>(), span_factor);  // first: it makes the totals that the others read
    backward.keys();
    backward.slots();
    backward.positions();
  });
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
