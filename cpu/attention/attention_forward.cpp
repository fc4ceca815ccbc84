#include <cmath>

#include "cpu/attention/attention_rows.hpp"
#include "cpu/dropout_bits.hpp"
#include "cpu/exponentials.hpp"
#include "cpu/parallel.hpp"

namespace engram::cpu {
namespace {

template <class T>
struct RowScale {
  T factor, lse;
};

// Turns one row of scores into weights (zero outside the band) that still lack a common factor, and returns that factor
// and log(sum of mask * exp(score)). What the mask is about to change is copied to `kept`, the row's first place.
template <class T>
RowScale<T> row_weights(const AttentionTile<T>& tile, std::int64_t i, const VisibleRow& row, T* matrix, T* kept) {
  const HeadPlan& head = tile.head_plan;
  const std::int64_t low = row.low;
  T* const band = matrix + tile.band(i);
  auto context = vec(band + low, head.slots - low);
  auto slots = vec(matrix + i * tile.row_length, tile.slot_columns);
  T top = largest_of(context.data(), context.size(), -std::numeric_limits<T>::infinity());
  top = largest_of(slots.data(), slots.size(), top);
  if (kept != nullptr)
    for (std::int64_t place = row.corner; place < low; ++place) kept[place] = band[place];
  if (tile.columns > 0) tile.clear_outside(matrix, i, low);
  if (context.size() + slots.size() == 0) return {T(0), top};
  T sum = 0;
  if (context.size() > 0) {
    sum = exponentials(context.data(), context.size(), top);
    if (kept != nullptr && low < row.full) std::copy(band + low, band + row.full, kept + low);
    tile.apply_mask(row, band);
    if (low < row.full) sum = context.sum();
  }
  sum += exponentials(slots.data(), slots.size(), top);
  return {T(1) / sum, top + std::log(sum)};
}

// Completes the kept row: exp(score - lse) everywhere. `kept` has its slots first, like `weights`.
template <class T>
void keep_row(const AttentionTile<T>& tile, std::int64_t i, const VisibleRow& row, const T* matrix, RowScale<T> scale,
              T* kept) {
  const HeadPlan& head = tile.head_plan;
  const std::int64_t low = row.low, unmasked = std::max(low, row.full);
  T* const context = kept + tile.slot_columns;
  if (scale.factor == T(0)) {
    std::fill_n(kept, head.kept_row, T(0));
    return;
  }
  vec(kept, tile.slot_columns) = scale.factor * vec(matrix + i * tile.row_length, tile.slot_columns);
  std::int64_t place = std::min(low, row.corner);
  std::fill_n(context, place, T(0));
  for (; place < low; ++place)
    context[place] = std::exp(std::min(context[place] - scale.lse, kLargestCornerExponent<T>));
  for (; place < unmasked; ++place) context[place] *= scale.factor;
  vec(context + unmasked, head.slots - unmasked) =
      scale.factor * vec(matrix + tile.band(i) + unmasked, head.slots - unmasked);
}

// Drops weights, and marks what is dropped in the kept ones (nullptr: none).
template <class T>
void drop(T* weights, const T* multipliers, std::int64_t count, T* kept) {
  vec(weights, count) *= vec(multipliers, count);
  if (kept == nullptr) return;
  for (std::int64_t j = 0; j < count; ++j) kept[j] = multipliers[j] == T(0) ? -kept[j] : kept[j];
}

template <class T>
struct ForwardCall {
  const AttentionData<T>& data;
  RandomStream random;
  T *out, *lse, *kept;
};

template <class T>
void forward_tile(const ForwardCall<T>& call, const AttentionTile<T>& tile, std::span<const ColumnPart<T>> parts,
                  T* scratch) {
  const AttentionSizes& s = tile.data.plan.sizes;
  const AttentionOptions& options = tile.data.options;
  T* scores = scratch;
  T* multipliers = scores + tile.queries * tile.row_length;
  T* factors = multipliers + std::max(tile.head_plan.slots, tile.slot_columns);
  tile.compute_scores(parts, scores);
  for (std::int64_t i = 0; i < tile.queries; ++i) {
    T* const kept = tile.kept_row(call.kept, i);
    T* const kept_context = kept == nullptr ? nullptr : kept + tile.slot_columns;
    const VisibleRow row = tile.visible_row(i);
    const RowScale<T> scale = row_weights(tile, i, row, scores, kept_context);
    factors[i] = scale.factor;
    call.lse[(tile.stream * s.heads + tile.head) * s.block + tile.first + i] = scale.lse;
    if (kept != nullptr) keep_row(tile, i, row, scores, scale, kept);
    if (!options.dropout.active()) continue;
    const std::uint64_t element = s.dropout_row(tile.stream, tile.head, tile.first + i);
    const std::int64_t low = kept == nullptr ? row.low : std::min(row.low, row.corner);
    if (const std::int64_t count = tile.head_plan.slots - low; count > 0) {
      const auto slot = static_cast<std::uint64_t>(options.max_distance - tile.head_plan.window + low);
      dropout_multipliers(call.random, options.dropout, element + slot, count, multipliers);
      drop(scores + tile.band(i) + low, multipliers, count, kept == nullptr ? nullptr : kept_context + low);
    }
    if (tile.slot_columns > 0) {
      dropout_multipliers(call.random, options.dropout, element + static_cast<std::uint64_t>(s.dropout_reach),
                          tile.slot_columns, multipliers);
      drop(scores + i * tile.row_length, multipliers, tile.slot_columns, kept);
    }
  }
  T* const to = tile.query_row(call.out, tile.first);
  Write write = Write::set;
  const auto add = [&](const T* weights, std::int64_t stride, std::int64_t count, const ScaledRows<T>& values) {
    gemm(Gemm<T>{.m = tile.queries,
                 .n = s.depth,
                 .k = count,
                 .factor = values.factor,
                 .a = weights,
                 .a_stride = stride,
                 .b = values.rows.data,
                 .b_stride = values.rows.stride,
                 .write = write,
                 .c = to,
                 .c_stride = s.width},
         tile.rounding, values.packed.times(values.row));
    write = Write::add;
  };
  for (const ColumnPart<T>& part : parts) add(scores + part.column, tile.row_length, part.length, part.values);
  if (tile.columns > 0 && tile.data.position_values) {
    const std::int64_t first = tile.packed_place(tile.first_place);
    add(scores + tile.band(0) + first, tile.band_stride(), tile.head_plan.slots - first,
        tile.position_values().from(first));
  }
  // No products at all: a head that sees nothing.
  if (parts.empty()) add(scores, tile.row_length, 0, {{scores, 0}, T(1)});
  for (std::int64_t i = 0; i < tile.queries; ++i) vec(to + i * s.width, s.depth) *= factors[i];
}

// Tiles of one head are cut into at most so many work items, which copy the slots once. Where rows of a stream are
// packed for all of its tiles, an item is a stream, if that makes enough items. No tile looks at another: the cut
// changes no bit.
std::int64_t items_of_head(const AttentionPlan& plan) {
  constexpr std::int64_t kMost = 8, kEnough = 4;
  return plan.packs && plan.sizes.heads * plan.sizes.streams >= kEnough * max_threads() ? plan.sizes.streams : kMost;
}

void attention_forward(Step& step, const AttentionInputs& in, const AttentionOptions& options, RandomStream random,
                       Tensor& out, Tensor& lse, Tensor& kept) {
  dispatch_float(out.dtype(), "attention", [&]<class T>() {
    const AttentionPlan plan(step, in, options, AttentionPass::forward);
    // Per thread: scores, one row of dropout multipliers and the factors of the rows, rounded to whole cache lines;
    // then the copied rows.
    const std::int64_t tile_size = ((plan.scratch_tile + 1) * plan.scratch_columns + plan.scratch_tile + 63) / 64 * 64;
    const std::int64_t per_thread = tile_size + (AttentionRows<T>::size(plan) + 63) / 64 * 64;
    const Workspace workspace = step.workspace(sizeof(T) * static_cast<std::size_t>(per_thread * max_threads()));
    const ReversedTables<T> tables(step, in, options);
    const PassUses uses(AttentionPass::forward, false);
    const PackedTables packed_tables(step, plan, in, tables, options, uses);
    const std::int64_t packed = AttentionRows<T>::packed_size(plan, uses);
    const Workspace packed_rows = step.workspace(sizeof(bf16) * static_cast<std::size_t>(packed * max_threads()));
    const RoundingMemory rounding = plan.rounding_memory(step);
    if (!step.computes()) return;
    const AttentionData<T> data(in, options, plan, tables, packed_tables);
    const ForwardCall<T> call{data, random, out.data<T>(), lse.data<T>(), kept ? kept.data<T>() : nullptr};

    T* const scratch = workspace.data<T>();
    const std::int64_t items = items_of_head(plan);
    parallel_items_on_threads(plan.sizes.heads * items, [&](std::int64_t item, int thread) {
      const std::int64_t head = plan.longest_first[static_cast<std::size_t>(item / items)];
      const std::int64_t length = plan.heads[static_cast<std::size_t>(head)].tile;
      const std::int64_t tiles_of_stream = (plan.sizes.block + length - 1) / length;
      const std::int64_t tiles = plan.sizes.streams * tiles_of_stream, part = item % items;
      const std::int64_t begin = tiles * part / items, end = tiles * (part + 1) / items;
      if (begin == end) return;
      T* const mine = scratch + thread * per_thread;
      AttentionRows<T> rows(data, head, uses, end, mine + tile_size, packed_rows.data<bf16>() + thread * packed);
      for (std::int64_t at = begin; at < end; ++at) {
        const AttentionTile<T> tile(data, at / tiles_of_stream, head, at % tiles_of_stream * length,
                                    rounding.of_thread(thread));
        forward_tile(call, tile, rows.of(tile), mine);
      }
    });
  });
}

const bool bound = kernels::attention_forward.bind(DeviceKind::cpu, &attention_forward, KernelMemory::workspace);

}  // namespace
}  // namespace engram::cpu
