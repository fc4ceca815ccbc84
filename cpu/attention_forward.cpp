#include <cmath>

#include "cpu/attention_tile.hpp"
#include "cpu/dropout_bits.hpp"
#include "cpu/parallel.hpp"

namespace engram::cpu {
namespace {

// Turns one row of scores into weights (zero outside the band) and returns log(sum of mask * exp(score)).
template <class T>
T row_weights(const AttentionTile<T>& tile, std::int64_t i, T* row) {
  const HeadPlan& head = tile.head_plan;
  const std::int64_t low = tile.first_visible(i);
  auto context = vec(row + i + low, head.slots - low);
  auto slots = vec(row + tile.columns, tile.persistent);
  T top = -std::numeric_limits<T>::infinity();
  if (context.size() > 0) top = context.maxCoeff();
  if (slots.size() > 0) top = std::max(top, slots.maxCoeff());
  if (context.size() + slots.size() == 0) {
    vec(row, tile.row_length).setZero();
    return top;
  }
  T sum = 0;
  if (context.size() > 0) {
    context = (context - top).exp();
    for (std::int64_t place = low; place < head.full; ++place)
      row[i + place] *= static_cast<T>(head.mask[static_cast<std::size_t>(place - head.visible)]);
    sum += context.sum();
  }
  if (slots.size() > 0) {
    slots = (slots - top).exp();
    sum += slots.sum();
  }
  const T share = T(1) / sum;
  context *= share;
  slots *= share;
  if (tile.columns > 0) {
    std::fill_n(row, i + low, T(0));
    std::fill(row + i + head.slots, row + tile.columns, T(0));
  }
  return top + std::log(sum);
}

// out = weights times values, over context and persistent slots.
template <class T>
void weighted_values(const AttentionTile<T>& tile, const T* weights, T* out) {
  const AttentionSizes& s = tile.data.plan.sizes;
  T* to = tile.query_row(out, tile.first);
  Write write = Write::set;
  const auto add = [&](const T* w, std::int64_t count, const T* values, std::int64_t stride, T factor) {
    gemm(Gemm<T>{.m = tile.queries,
                 .n = s.depth,
                 .k = count,
                 .factor = factor,
                 .a = w,
                 .a_stride = tile.row_length,
                 .b = values,
                 .b_stride = stride,
                 .write = write,
                 .c = to,
                 .c_stride = s.width});
    write = Write::add;
  };
  for (const ColumnRun& run : tile.runs) {
    const auto values =
        tile.run_rows(run, tile.past(tile.data.in.past_values), tile.data.in.values.template data<const T>());
    add(weights + run.column, run.length, values.data, values.stride, T(1));
  }
  if (tile.persistent > 0)
    add(weights + tile.columns, tile.persistent, tile.slots_of(tile.data.in.slot_values.template data<const T>()),
        s.depth, static_cast<T>(tile.data.options.slot_value_scale));
  // No products at all: a head that sees nothing.
  if (tile.row_length == 0) add(weights, 0, weights, 0, T(1));
}

template <class T>
void forward_tile(const AttentionTile<T>& tile, RandomStream random, T* scratch, T* out, T* lse) {
  const AttentionSizes& s = tile.data.plan.sizes;
  const AttentionOptions& options = tile.data.options;
  T* scores = scratch;
  T* positions = scores + tile.queries * tile.row_length;
  T* multipliers = positions + tile.queries * tile.head_plan.slots;
  tile.compute_scores(scores, positions);
  for (std::int64_t i = 0; i < tile.queries; ++i) {
    T* row = scores + i * tile.row_length;
    lse[(tile.stream * s.heads + tile.head) * s.block + tile.first + i] = row_weights(tile, i, row);
    if (!options.dropout.active()) continue;
    const std::uint64_t element = s.dropout_row(tile.stream, tile.head, tile.first + i);
    const std::int64_t low = tile.first_visible(i), count = tile.head_plan.slots - low;
    if (count > 0) {
      const auto slot = static_cast<std::uint64_t>(options.max_distance - tile.head_plan.window + low);
      dropout_multipliers(random, options.dropout, element + slot, count, multipliers);
      vec(row + i + low, count) *= vec(multipliers, count);
    }
    if (tile.persistent > 0) {
      dropout_multipliers(random, options.dropout, element + static_cast<std::uint64_t>(s.dropout_reach),
                          tile.persistent, multipliers);
      vec(row + tile.columns, tile.persistent) *= vec(multipliers, tile.persistent);
    }
  }
  weighted_values(tile, scores, out);
}

void attention_forward(Step& step, const AttentionInputs& in, const AttentionOptions& options, RandomStream random,
                       Tensor& out, Tensor& lse) {
  dispatch_float(out.dtype(), "attention", [&]<class T>() {
    const AttentionPlan plan(in, options);
    const bool positions =
        in.position_keys && options.windows.longest + 1 > options.min_distance && options.max_distance > 0;
    const std::int64_t table =
        positions ? (options.windows.longest + 1 - options.min_distance) * in.position_keys.shape()[1] : 0;
    // Per thread: scores, position scores and one row of dropout multipliers, rounded to whole cache lines.
    const std::int64_t per_thread = ((plan.scratch_tile + 1) * 2 * plan.scratch_columns + 63) / 64 * 64;
    const Workspace workspace =
        step.workspace(sizeof(T) * static_cast<std::size_t>((table + 63) / 64 * 64 + per_thread * max_threads()));
    T* reversed = workspace.data<T>();
    if (positions) reverse_position_keys(in, options, reversed);
    const AttentionData<T> data(in, options, plan, positions ? reversed : nullptr);

    struct Item {
      std::int64_t head, stream, query;
    };
    std::vector<Item> items;
    for (const int head : plan.longest_first)
      for (std::int64_t stream = 0; stream < plan.sizes.streams; ++stream)
        for (std::int64_t query = 0; query < plan.sizes.block; query += plan.heads[std::size_t(head)].tile)
          items.push_back({head, stream, query});
    T* scratch = reversed + (table + 63) / 64 * 64;
    parallel_items_on_threads(static_cast<std::int64_t>(items.size()), [&](std::int64_t index, int thread) {
      const auto [head, stream, query] = items[static_cast<std::size_t>(index)];
      forward_tile(AttentionTile<T>(data, stream, head, query), random, scratch + thread * per_thread, out.data<T>(),
                   lse.data<T>());
    });
  });
}

const bool bound = kernels::attention_forward.bind(DeviceKind::cpu, &attention_forward);

}  // namespace
}  // namespace engram::cpu
