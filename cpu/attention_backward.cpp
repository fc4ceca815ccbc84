#include <algorithm>

#include "cpu/attention_partials.hpp"
#include "cpu/attention_rows.hpp"
#include "cpu/colliding_rows.hpp"
#include "cpu/dropout_bits.hpp"
#include "cpu/exponentials.hpp"
#include "cpu/parallel.hpp"

namespace engram::cpu {
namespace {

template <class T>
constexpr T kLargestBoundaryExponent = 18;  // see the declaration: a slot outside the mask is not part of lse

template <class T>
struct BackwardCall {
  const AttentionData<T>& data;
  RandomStream random;
  const T* out;
  const T* lse;
  const T* dout;
  AttentionGradients& gradients;

  static T* of(const AttentionGradients::Target& target) { return target ? target.tensor.template data<T>() : nullptr; }
};

// Buffers of a tile: two matrices [queries, row_length], two rows, and the tile's own rows of the queries and of the
// output's gradient: products that read them along their columns are a quarter faster when they lie together (oneDNN on
// a Zen 3, width 512). Slot tables that are not copied have matrices [queries, kSlotRun] instead.
template <class T>
struct Scratch {
  T *weights, *dscores, *multipliers, *boundary, *query, *position_query, *dout, *totals;

  static std::int64_t columns(const AttentionPlan& plan) {
    return std::max(plan.scratch_columns,
                    plan.sizes.persistent > plan.slot_columns ? matrix_row_length(AttentionPlan::kSlotRun) : 0);
  }
  static std::int64_t size(const AttentionPlan& plan) {
    return (plan.scratch_tile + 1) * 2 * columns(plan) + plan.scratch_tile * (3 * plan.sizes.depth + 1);
  }
  Scratch(T* memory, const BackwardCall<T>& call, const AttentionTile<T>& tile) : weights(memory) {
    const AttentionSizes& s = call.data.plan.sizes;
    const std::int64_t row = columns(call.data.plan);
    dscores = weights + tile.queries * row;
    multipliers = dscores + tile.queries * row;
    boundary = multipliers + row;
    query = boundary + row;
    dout = query + tile.queries * s.depth;
    position_query = dout + tile.queries * s.depth;
    totals = position_query + tile.queries * s.depth;
    const auto copy = [&](const T* tensor, T* to) {
      copy_rows(tile.query_row(tensor, tile.first), s.width, tile.queries, s.depth, to, s.depth);
    };
    copy(call.data.content_query, query);
    copy(call.dout, dout);
    if (call.data.position_query == call.data.content_query)
      position_query = query;
    else
      copy(call.data.position_query, position_query);
    // What softmax takes off every gradient: the sum of weight times gradient, which is dout times out.
    for (std::int64_t i = 0; i < tile.queries; ++i)
      totals[i] = (vec(dout + i * s.depth, s.depth) * vec(tile.query_row(call.out, tile.first + i), s.depth)).sum();
  }
};

// Numbers of the random elements of a query's row.
template <class T>
struct RandomElements {
  std::uint64_t context, slots;  // of place 0 of the band (it may lie before the row's first), of slot 0
  RandomElements(const BackwardCall<T>& call, const AttentionTile<T>& tile, std::int64_t m) {
    const AttentionSizes& s = call.data.plan.sizes;
    const std::uint64_t row = s.dropout_row(tile.stream, tile.head, m);
    context = row + static_cast<std::uint64_t>(call.data.options.max_distance - tile.head_plan.window);
    slots = row + static_cast<std::uint64_t>(s.dropout_reach);
  }
};

// Part of a row: weights -> times dropout (for the values' gradient), gradient of the weights -> of the scores.
template <class T>
void weight_gradients(const BackwardCall<T>& call, T* weights, T* dscores, std::int64_t length, T total,
                      std::uint64_t first_element, T* multipliers) {
  auto weight = vec(weights, length);
  auto gradient = vec(dscores, length);
  const DropoutRule& dropout = call.data.options.dropout;
  if (!dropout.active()) {
    gradient = weight * (gradient - total);
    return;
  }
  dropout_multipliers(call.random, dropout, first_element, length, multipliers);
  const auto kept = vec(static_cast<const T*>(multipliers), length);
  gradient = weight * (kept * gradient - total);
  weight *= kept;
}

// One row: scores -> weights times dropout, dweights -> gradient of the scores.
template <class T>
void backward_row(const BackwardCall<T>& call, const AttentionTile<T>& tile, std::int64_t i, const Scratch<T>& scratch,
                  double* dspan) {
  const HeadPlan& head = tile.head_plan;
  const std::int64_t m = tile.first + i, low = tile.first_visible(i), count = head.slots - low;
  const AttentionSizes& s = call.data.plan.sizes;
  const T lse = call.lse[(tile.stream * s.heads + tile.head) * s.block + m], total = scratch.totals[i];
  const RandomElements<T> elements(call, tile, m);
  const auto of_place = [&](std::int64_t place) { return elements.context + static_cast<std::uint64_t>(place); };
  if (tile.columns > 0 && count + s.persistent == 0) {
    for (T* matrix : {scratch.weights, scratch.dscores}) tile.clear_outside(matrix, i, low);
    return;
  }

  T* const band_weights = scratch.weights + tile.band(i);
  T* const band_dscores = scratch.dscores + tile.band(i);
  if (dspan != nullptr && head.corner_begin < head.corner_end) {
    // Before the scores are overwritten: dmask = exp(score - lse) (g - D), for the few slots on the ramp.
    std::int64_t begin = head.corner_begin;
    if (call.data.in.past_valid)
      begin = std::max(
          begin, first_valid_place(head, m, call.data.in.past_valid.template data<const std::int32_t>()[tile.stream]));
    if (const std::int64_t corners = head.corner_end - begin; corners > 0) {
      auto share = vec(scratch.boundary, corners), gradient = vec(scratch.multipliers, corners);
      share = (vec(band_weights + begin, corners) - lse).min(kLargestBoundaryExponent<T>);
      exponentials(share.data(), corners, T(0));
      if (call.data.options.dropout.active())
        dropout_multipliers(call.random, call.data.options.dropout, of_place(begin), corners, scratch.multipliers);
      else
        gradient.setOnes();
      *dspan += static_cast<double>((share * (gradient * vec(band_dscores + begin, corners) - total)).sum());
    }
  }
  if (tile.columns > 0) {
    exponentials(band_weights + low, count, lse);
    for (std::int64_t place = low; place < head.full; ++place)
      band_weights[place] *= static_cast<T>(head.mask[static_cast<std::size_t>(place - head.visible)]);
    weight_gradients(call, band_weights + low, band_dscores + low, count, total, of_place(low), scratch.multipliers);
    for (T* matrix : {scratch.weights, scratch.dscores}) tile.clear_outside(matrix, i, low);
  }
  if (tile.slot_columns > 0) {
    T* const weights = scratch.weights + i * tile.row_length;
    exponentials(weights, tile.slot_columns, lse);
    weight_gradients(call, weights, scratch.dscores + i * tile.row_length, tile.slot_columns, total, elements.slots,
                     scratch.multipliers);
  }
}

// Gradients of the rows that AttentionRows copied: sums in the same order, spread to where the rows came from. Between
// tiles the context's part is zero.
template <class T>
class RowGradients {
 public:
  static std::int64_t size(const AttentionPlan& plan) { return AttentionRows<T>::size(plan); }
  RowGradients(const BackwardCall<T>& call, const Partial<T>& partial, T* memory)
      : call_(call),
        partial_(partial),
        depth_(call.data.plan.sizes.depth),
        slots_(call.data.plan.gathers_slots ? call.data.plan.sizes.persistent * depth_ : 0),
        keys_(memory),
        values_(memory + call.data.plan.scratch_columns * depth_) {
    std::fill_n(memory, size(call.data.plan), T(0));
  }

  // Where the gradients of the copied keys or values are added; nullptr: nobody wants them.
  T* keys() const {
    const AttentionGradients& wanted = call_.gradients;
    return wanted.past_keys || wanted.keys || (slots_ > 0 && partial_.slot_keys != nullptr) ? keys_ : nullptr;
  }
  T* values() const {
    const AttentionGradients& wanted = call_.gradients;
    return wanted.past_values || wanted.values || (slots_ > 0 && partial_.slot_values != nullptr) ? values_ : nullptr;
  }
  // After the products of a tile.
  void spread_context(const AttentionTile<T>& tile) const {
    const auto score_scale = static_cast<T>(call_.data.options.score_scale);
    const AttentionGradients& wanted = call_.gradients;
    spread(tile, keys_ + slots_, score_scale, call_.of(wanted.past_keys), call_.of(wanted.keys));
    spread(tile, values_ + slots_, T(1), call_.of(wanted.past_values), call_.of(wanted.values));
  }
  // After the last tile.
  void finish_slots() const {
    const AttentionOptions& options = call_.data.options;
    if (slots_ == 0) return;
    if (partial_.slot_keys != nullptr)
      vec(partial_.slot_keys, slots_) = static_cast<T>(options.slot_score_scale) * vec(keys_, slots_);
    if (partial_.slot_values != nullptr)
      vec(partial_.slot_values, slots_) = static_cast<T>(options.slot_value_scale) * vec(values_, slots_);
  }

 private:
  void spread(const AttentionTile<T>& tile, T* from, T factor, T* past, T* block) const {
    for (const ColumnRun& run : tile.runs) {
      T* const wanted = run.past ? past : block;
      const RowsAt<T> to = wanted == nullptr ? RowsAt<T>{} : tile.run_rows(run, past, block);
      for (std::int64_t row = 0; row < run.length; ++row, from += depth_)
        if (wanted != nullptr) add_scaled_row(to.data + row * to.stride, from, depth_, factor);
    }
    std::fill_n(from - tile.columns * depth_, tile.columns * depth_, T(0));
  }

  const BackwardCall<T>& call_;
  const Partial<T>& partial_;
  std::int64_t depth_, slots_;  // slots_: elements of the copied slots
  T *keys_, *values_;
};

// The products of a tile's gradients.
template <class T>
struct TileGradients {
  const BackwardCall<T>& call;
  const AttentionTile<T>& tile;
  T* dquery;          // of the content's queries; nullptr: not wanted
  Write query_write;  // set until a product has been written

  TileGradients(const BackwardCall<T>& of_call, const AttentionTile<T>& of_tile)
      : call(of_call),
        tile(of_tile),
        dquery(call.of(call.gradients.content_query)),
        query_write(call.gradients.content_query.write) {}

  // to[count, D] (add) factor times matrix^T rows, the rows being those of the tile's queries in Scratch.
  void into_rows(const T* matrix, std::int64_t stride, std::int64_t count, const T* rows, T factor, T* to) const {
    if (to == nullptr) return;
    const std::int64_t depth = call.data.plan.sizes.depth;
    gemm(Gemm<T>{.transpose_a = Transpose::yes,
                 .m = count,
                 .n = depth,
                 .k = tile.queries,
                 .factor = factor,
                 .a = matrix,
                 .a_stride = stride,
                 .b = rows,
                 .b_stride = depth,
                 .write = Write::add,
                 .c = to,
                 .c_stride = depth});
  }
  // The tile's rows of `to`, a [B, M, H D] tensor (set or add): matrix times keys.
  void into_query(T* to, Write& write, const T* matrix, std::int64_t stride, std::int64_t count,
                  const ScaledRows<T>& keys) const {
    const AttentionSizes& s = call.data.plan.sizes;
    if (to == nullptr) return;
    gemm(Gemm<T>{.m = tile.queries,
                 .n = s.depth,
                 .k = count,
                 .factor = keys.factor,
                 .a = matrix,
                 .a_stride = stride,
                 .b = keys.rows.data,
                 .b_stride = keys.rows.stride,
                 .write = write,
                 .c = tile.query_row(to, tile.first),
                 .c_stride = s.width});
    write = Write::add;
  }
};

// Persistent slots that are used where they lie, run by run.
template <class T>
void backward_table(TileGradients<T>& gradients, const ColumnPart<T>& table, const Scratch<T>& scratch,
                    const Partial<T>& partial) {
  const BackwardCall<T>& call = gradients.call;
  const AttentionTile<T>& tile = gradients.tile;
  const AttentionSizes& s = call.data.plan.sizes;
  constexpr std::int64_t kStride = matrix_row_length(AttentionPlan::kSlotRun);
  for (std::int64_t slot = 0; slot < table.length; slot += AttentionPlan::kSlotRun) {
    const std::int64_t count = std::min(AttentionPlan::kSlotRun, table.length - slot);
    ScaledRows<T> keys = table.keys, values = table.values;
    keys.rows.data += slot * s.depth;
    values.rows.data += slot * s.depth;
    tile.against(call.data.content_query, keys, count, scratch.weights, kStride);
    tile.against(call.dout, values, count, scratch.dscores, kStride);
    for (std::int64_t i = 0; i < tile.queries; ++i) {
      const std::int64_t m = tile.first + i;
      T* const weights = scratch.weights + i * kStride;
      exponentials(weights, count, call.lse[(tile.stream * s.heads + tile.head) * s.block + m]);
      weight_gradients(call, weights, scratch.dscores + i * kStride, count, scratch.totals[i],
                       RandomElements<T>(call, tile, m).slots + static_cast<std::uint64_t>(slot), scratch.multipliers);
    }
    const auto rows_of = [&](T* sum) { return sum == nullptr ? nullptr : sum + slot * s.depth; };
    gradients.into_rows(scratch.weights, kStride, count, scratch.dout, values.factor, rows_of(partial.slot_values));
    gradients.into_rows(scratch.dscores, kStride, count, scratch.query, keys.factor, rows_of(partial.slot_keys));
    gradients.into_query(gradients.dquery, gradients.query_write, scratch.dscores, kStride, count, keys);
  }
}

template <class T>
void backward_tile(const BackwardCall<T>& call, const AttentionTile<T>& tile, AttentionRows<T>& sources,
                   const RowGradients<T>& rows, const Scratch<T>& scratch, const Partial<T>& partial) {
  TileGradients<T> gradients(call, tile);
  if (tile.slot_columns == 0) backward_table(gradients, sources.table(), scratch, partial);
  const std::span<const ColumnPart<T>> parts = sources.of(tile);
  if (parts.empty()) return;
  const std::int64_t stride = tile.row_length;
  tile.compute_scores(parts, scratch.weights);
  for (const ColumnPart<T>& part : parts)
    tile.against(call.dout, part.values, part.length, scratch.dscores + part.column, stride);
  for (std::int64_t i = 0; i < tile.queries; ++i) backward_row(call, tile, i, scratch, partial.span);
  for (const ColumnPart<T>& part : parts) {
    const T *weights = scratch.weights + part.column, *dscores = scratch.dscores + part.column;
    gradients.into_rows(weights, stride, part.length, scratch.dout, part.values.factor, rows.values());
    gradients.into_rows(dscores, stride, part.length, scratch.query, part.keys.factor, rows.keys());
    gradients.into_query(gradients.dquery, gradients.query_write, dscores, stride, part.length, part.keys);
  }
  rows.spread_context(tile);
  if (tile.columns == 0 || call.data.reversed_positions == nullptr) return;

  const auto score_scale = static_cast<T>(call.data.options.score_scale);
  const T* band = scratch.dscores + tile.band(0);
  const std::int64_t slots = tile.head_plan.slots;
  const ScaledRows<T> positions{tile.position_rows(), score_scale};
  Write position_write = call.gradients.position_query.write;
  if (call.data.in.position_query)
    gradients.into_query(call.of(call.gradients.position_query), position_write, band, tile.band_stride(), slots,
                         positions);
  else
    gradients.into_query(gradients.dquery, gradients.query_write, band, tile.band_stride(), slots, positions);
  gradients.into_rows(band, tile.band_stride(), slots, scratch.position_query, score_scale, partial.positions);
}

template <class T>
void zero_if_set(const AttentionGradients::Target& target) {
  if (!target || target.write == Write::add) return;
  T* data = target.tensor.template data<T>();
  parallel_chunks(target.tensor.count(), kElementChunk,
                  [&](std::int64_t begin, std::int64_t end) { std::fill(data + begin, data + end, T(0)); });
}

// Streams are dealt into groups, each with its own partial sums: enough work items for many threads, few enough sums.
constexpr std::int64_t kMostGroups = 4;

void attention_backward(Step& step, const AttentionInputs& in, const AttentionOptions& options, RandomStream random,
                        const Tensor& out, const Tensor& lse, const Tensor& dout, AttentionGradients& gradients) {
  dispatch_float(out.dtype(), "attention", [&]<class T>() {
    const AttentionPlan plan(step, in, options, AttentionPass::backward);
    const AttentionSizes& s = plan.sizes;
    const bool positions =
        in.position_keys && options.windows.longest + 1 > options.min_distance && options.max_distance > 0;
    const std::int64_t table =
        positions ? (options.windows.longest + 1 - options.min_distance) * in.position_keys.shape()[1] : 0;
    const std::int64_t tile_size = (Scratch<T>::size(plan) + 63) / 64 * 64;
    const std::int64_t rows_size = (AttentionRows<T>::size(plan) + 63) / 64 * 64;
    const std::int64_t per_thread = tile_size + 2 * rows_size;
    const Workspace workspace =
        step.workspace(sizeof(T) * static_cast<std::size_t>((table + 63) / 64 * 64 + per_thread * max_threads()));
    T* reversed = workspace.data<T>();
    if (positions) reverse_position_keys(in, options, reversed);
    const AttentionData<T> data(in, options, plan, positions ? reversed : nullptr);
    const BackwardCall<T> call{data, random, out.data<const T>(), lse.data<const T>(), dout.data<const T>(), gradients};
    // Rows of keys and values get sums from several tiles; queries of heads without any context from none.
    for (auto* target : {&gradients.past_keys, &gradients.past_values, &gradients.keys, &gradients.values})
      zero_if_set<T>(*target);
    const bool some_blind = std::ranges::any_of(plan.heads, [](const HeadPlan& head) { return head.slots == 0; });
    if (some_blind && s.persistent == 0) zero_if_set<T>(gradients.content_query);
    if (some_blind || !positions) zero_if_set<T>(gradients.position_query);

    const std::int64_t groups = std::min(s.streams, kMostGroups);
    const Partials<T> partials(step, data, gradients, groups);
    T* scratch = reversed + (table + 63) / 64 * 64;
    parallel_items_on_threads(s.heads * groups, [&](std::int64_t item, int thread) {
      const std::int64_t head = plan.longest_first[static_cast<std::size_t>(item / groups)], group = item % groups;
      const Partial<T> partial = partials.of(group, head);
      partials.clear(partial, head);
      T* const mine = scratch + thread * per_thread;
      AttentionRows<T> rows(data, head, mine + tile_size);
      const RowGradients<T> row_gradients(call, partial, mine + tile_size + rows_size);
      for (std::int64_t stream = group; stream < s.streams; stream += groups)
        for (std::int64_t query = 0; query < s.block; query += plan.heads[static_cast<std::size_t>(head)].tile) {
          const AttentionTile<T> tile(data, stream, head, query);
          backward_tile(call, tile, rows, row_gradients, Scratch<T>(mine, call, tile), partial);
        }
      row_gradients.finish_slots();
    });
    partials.finish(options);
  });
}

const bool bound = kernels::attention_backward.bind(DeviceKind::cpu, &attention_backward);

}  // namespace
}  // namespace engram::cpu
