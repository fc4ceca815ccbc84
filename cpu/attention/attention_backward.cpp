#include <algorithm>
#include <limits>

#include "cpu/attention/attention_partials.hpp"
#include "cpu/attention/attention_row_gradients.hpp"
#include "cpu/attention/attention_rows.hpp"
#include "cpu/zero_if_set.hpp"

namespace engram::cpu {
namespace {

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
        values_(memory + call.data.plan.copied_rows * depth_) {
    std::fill_n(memory, size(call.data.plan), T(0));
  }

  // Where the gradients of the tile's copied keys or values are added; nullptr: nobody wants them.
  T* keys(const AttentionTile<T>& tile) const {
    const AttentionGradients& wanted = call_.gradients;
    return wanted.past_keys || wanted.keys || (slots_ > 0 && partial_.slot_keys != nullptr) ? keys_ + first(tile)
                                                                                            : nullptr;
  }
  T* values(const AttentionTile<T>& tile) const {
    const AttentionGradients& wanted = call_.gradients;
    return wanted.past_values || wanted.values || (slots_ > 0 && partial_.slot_values != nullptr)
               ? values_ + first(tile)
               : nullptr;
  }
  // After the products of a tile.
  void finish_tile(const AttentionTile<T>& tile) const {
    if (!call_.data.plan.copies_streams()) spread_context(tile, tile.runs);
  }
  // After the last tile of a stream; `tile`: any of them.
  void finish_stream(const AttentionTile<T>& tile) const {
    const AttentionData<T>& data = call_.data;
    if (data.plan.copies_streams())
      spread_context(tile, ColumnRuns(tile.head_plan, 0, data.plan.sizes.block, data.options.past_count));
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
  std::int64_t first(const AttentionTile<T>& tile) const {
    return call_.data.plan.copies_streams() ? tile.copied_row() * depth_ : 0;
  }
  void spread_context(const AttentionTile<T>& tile, const ColumnRuns& runs) const {
    const auto score_scale = static_cast<T>(call_.data.options.score_scale);
    const AttentionGradients& wanted = call_.gradients;
    spread(tile, runs, keys_ + slots_, score_scale, wanted.past_keys.data<T>(), wanted.keys.data<T>());
    spread(tile, runs, values_ + slots_, T(1), wanted.past_values.data<T>(), wanted.values.data<T>());
  }
  // The sums of the runs' rows, to where these came from; they become zero.
  void spread(const AttentionTile<T>& tile, const ColumnRuns& runs, T* from, T factor, T* past, T* block) const {
    for (const ColumnRun& run : runs) {
      T* const wanted = run.past ? past : block;
      const RowsAt<T> to = wanted == nullptr ? RowsAt<T>{} : tile.run_rows(run, past, block);
      for (std::int64_t row = 0; wanted != nullptr && row < run.length; ++row)
        add_scaled_row(to.data + row * to.stride, from + row * depth_, depth_, factor);
      from = std::fill_n(from, run.length * depth_, T(0));
    }
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
        dquery(call.gradients.content_query.template data<T>()),
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
                 .c_stride = depth},
         tile.rounding);
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
                 .c_stride = s.width},
         tile.rounding, keys.packed.times(keys.row));
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
    const ScaledRows<T> keys = table.keys.from(slot), values = table.values.from(slot);
    if (call.kept == nullptr) tile.against(call.data.content_query, keys, count, scratch.weights, kStride);
    tile.against(call.dout, values, count, scratch.dscores, kStride);
    for (std::int64_t i = 0; i < tile.queries; ++i) {
      const std::int64_t m = tile.first + i;
      const T* const kept = tile.kept_row(call.kept, i);
      part_gradients(
          call, kept == nullptr ? nullptr : kept + slot, call.lse[(tile.stream * s.heads + tile.head) * s.block + m],
          RandomElements<T>(call, tile, m).slots + static_cast<std::uint64_t>(slot), count, scratch.totals[i],
          scratch.weights + i * kStride, scratch.dscores + i * kStride, scratch.multipliers);
    }
    const auto rows_of = [&](T* sum) { return sum == nullptr ? nullptr : sum + slot * s.depth; };
    gradients.into_rows(scratch.weights, kStride, count, scratch.dout, values.factor, rows_of(partial.slot_values));
    gradients.into_rows(scratch.dscores, kStride, count, scratch.query, keys.factor, rows_of(partial.slot_keys));
    gradients.into_query(gradients.dquery, gradients.query_write, scratch.dscores, kStride, count, keys);
  }
}

// All rows of the tile. A span of the query gets its gradient here, a span of the head its tile's part.
template <class T>
void backward_rows(const BackwardCall<T>& call, const AttentionTile<T>& tile, const Scratch<T>& scratch,
                   double* dspan) {
  T* const of_queries = call.data.query_spans == nullptr ? nullptr : call.gradients.span.template data<T>();
  const double factor = call.data.options.max_distance / std::max(1.0, double(call.data.options.ramp));
  for (std::int64_t i = 0; i < tile.queries; ++i) {
    if (of_queries == nullptr) {
      backward_row(call, tile, i, scratch, dspan);
    } else {
      double sum = 0;
      backward_row(call, tile, i, scratch, &sum);
      of_queries[tile.span_element(i)] += static_cast<T>(factor * sum);
    }
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
  if (call.kept == nullptr) tile.compute_scores(parts, scratch.weights);
  for (const ColumnPart<T>& part : parts)
    tile.against(call.dout, part.values, part.length, scratch.dscores + part.column, stride);
  if (tile.columns > 0 && call.data.position_values)
    tile.against_positions(call.dout, tile.position_values(), 0, scratch.dscores);
  backward_rows(call, tile, scratch, partial.span);
  for (const ColumnPart<T>& part : parts) {
    const T *weights = scratch.weights + part.column, *dscores = scratch.dscores + part.column;
    gradients.into_rows(weights, stride, part.length, scratch.dout, part.values.factor, rows.values(tile));
    gradients.into_rows(dscores, stride, part.length, scratch.query, part.keys.factor, rows.keys(tile));
    gradients.into_query(gradients.dquery, gradients.query_write, dscores, stride, part.length, part.keys);
  }
  rows.finish_tile(tile);
  if (tile.columns == 0) return;

  // What a span hides is zero here and stays in, as does what is missing in a few columns.
  const std::int64_t first = tile.skipped > 0 ? tile.packed_place(tile.first_place) : 0;
  const std::int64_t slots = tile.head_plan.slots - first;
  const auto from_first = [&](T* sum) { return sum == nullptr ? nullptr : sum + first * call.data.plan.sizes.depth; };
  gradients.into_rows(scratch.weights + tile.band(0) + first, tile.band_stride(), slots, scratch.dout, T(1),
                      from_first(partial.position_values));
  if (!call.data.position_keys) return;
  const auto score_scale = static_cast<T>(call.data.options.score_scale);
  const T* band = scratch.dscores + tile.band(0) + first;
  const ScaledRows<T> positions = tile.position_keys(score_scale).from(first);
  Write position_write = call.gradients.position_query.write;
  if (call.data.in.position_query)
    gradients.into_query(call.gradients.position_query.template data<T>(), position_write, band, tile.band_stride(),
                         slots, positions);
  else
    gradients.into_query(gradients.dquery, gradients.query_write, band, tile.band_stride(), slots, positions);
  gradients.into_rows(band, tile.band_stride(), slots, scratch.position_query, score_scale,
                      from_first(partial.position_keys));
}

// Streams are dealt into groups, each with its own partial sums: enough work items for many threads, few enough sums.
constexpr std::int64_t kMostGroups = 4;
// A group has all tiles of its streams.
constexpr std::int64_t kAllTiles = std::numeric_limits<std::int64_t>::max();

void attention_backward(Step& step, const AttentionInputs& in, const AttentionOptions& options, RandomStream random,
                        const Tensor& out, const Tensor& lse, const Tensor& kept, const Tensor& dout,
                        const AttentionGradients& gradients) {
  dispatch_float(out.dtype(), "attention", [&]<class T>() {
    const AttentionPlan plan(step, in, options, AttentionPass::backward);
    const AttentionSizes& s = plan.sizes;
    const std::int64_t tile_size = (Scratch<T>::size(plan) + 63) / 64 * 64;
    const std::int64_t rows_size = (AttentionRows<T>::size(plan) + 63) / 64 * 64;
    const std::int64_t per_thread = tile_size + 2 * rows_size;
    const Workspace workspace = step.workspace(sizeof(T) * static_cast<std::size_t>(per_thread * max_threads()));
    const ReversedTables<T> tables(step, in, options);
    const PassUses uses(AttentionPass::backward, !kept);
    const PackedTables packed_tables(step, plan, in, tables, options, uses);
    const std::int64_t packed = AttentionRows<T>::packed_size(plan, uses);
    const Workspace packed_rows = step.workspace(sizeof(bf16) * static_cast<std::size_t>(packed * max_threads()));
    const AttentionData<T> data(in, options, plan, tables, packed_tables);
    const BackwardCall<T> call{.data = data,
                               .random = random,
                               .out = out.data<const T>(),
                               .lse = lse.data<const T>(),
                               .kept = kept ? kept.data<const T>() : nullptr,
                               .dout = dout.data<const T>(),
                               .gradients = gradients};
    const std::int64_t groups = std::min(s.streams, kMostGroups);
    const Partials<T> partials(step, data, gradients, groups);
    const RoundingMemory rounding = plan.rounding_memory(step);
    if (!step.computes()) return;
    // Rows of keys and values get sums from several tiles; queries of heads without any context from none.
    for (const Target* target : {&gradients.past_keys, &gradients.past_values, &gradients.keys, &gradients.values})
      zero_if_set<T>(*target);
    const bool some_blind = std::ranges::any_of(plan.heads, [](const HeadPlan& head) { return head.slots == 0; });
    if (some_blind && s.persistent == 0) zero_if_set<T>(gradients.content_query);
    if (some_blind || !data.position_keys) zero_if_set<T>(gradients.position_query);
    // Some queries see nothing, others have no mask.
    if (has_query_spans(in)) zero_if_set<T>(gradients.span);

    T* const scratch = workspace.data<T>();
    parallel_items_on_threads(s.heads * groups, [&](std::int64_t item, int thread) {
      const std::int64_t head = plan.longest_first[static_cast<std::size_t>(item / groups)], group = item % groups;
      const Partial<T> partial = partials.of(group, head);
      partials.clear(partial, head);
      T* const mine = scratch + thread * per_thread;
      AttentionRows<T> rows(data, head, uses, kAllTiles, mine + tile_size, packed_rows.data<bf16>() + thread * packed);
      const RowGradients<T> row_gradients(call, partial, mine + tile_size + rows_size);
      for (std::int64_t stream = group; stream < s.streams; stream += groups)
        for (std::int64_t query = 0; query < s.block; query += plan.heads[static_cast<std::size_t>(head)].tile) {
          const AttentionTile<T> tile(data, stream, head, query, rounding.of_thread(thread));
          backward_tile(call, tile, rows, row_gradients, Scratch<T>(mine, call, tile), partial);
          if (query + tile.queries == s.block) row_gradients.finish_stream(tile);
        }
      row_gradients.finish_slots();
    });
    partials.finish(options);
  });
}

const bool bound = kernels::attention_backward.bind(DeviceKind::cpu, &attention_backward, KernelMemory::workspace);

}  // namespace
}  // namespace engram::cpu
