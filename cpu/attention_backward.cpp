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
// a Zen 3, width 512).
template <class T>
struct Scratch {
  T *weights, *dscores, *multipliers, *boundary, *query, *position_query, *dout;

  static std::int64_t size(const AttentionPlan& plan) {
    return (plan.scratch_tile + 1) * 2 * plan.scratch_columns + 3 * plan.scratch_tile * plan.sizes.depth;
  }
  Scratch(T* memory, const BackwardCall<T>& call, const AttentionTile<T>& tile)
      : weights(memory),
        dscores(weights + tile.queries * tile.row_length),
        multipliers(dscores + tile.queries * tile.row_length),
        boundary(multipliers + std::max(tile.head_plan.slots, tile.persistent)) {
    const std::int64_t depth = call.data.plan.sizes.depth, width = call.data.plan.sizes.width;
    T* next = boundary + tile.head_plan.slots;
    const auto copied = [&](const T* tensor) {
      T* const to = next;
      copy_rows(tile.query_row(tensor, tile.first), width, tile.queries, depth, to, depth);
      next += tile.queries * depth;
      return to;
    };
    query = copied(call.data.content_query);
    position_query = call.data.position_query == call.data.content_query ? query : copied(call.data.position_query);
    dout = copied(call.dout);
  }
};

// One row: scores -> weights times dropout (for the values' gradient), dweights -> gradient of the scores.
template <class T>
void backward_row(const BackwardCall<T>& call, const AttentionTile<T>& tile, std::int64_t i, const Scratch<T>& scratch,
                  double* dspan) {
  const AttentionSizes& s = call.data.plan.sizes;
  const AttentionOptions& options = call.data.options;
  const HeadPlan& head = tile.head_plan;
  const std::int64_t m = tile.first + i, low = tile.first_visible(i), count = head.slots - low;
  const T lse = call.lse[(tile.stream * s.heads + tile.head) * s.block + m];
  if (count + tile.persistent == 0) {
    for (T* matrix : {scratch.weights, scratch.dscores}) vec(matrix + i * tile.row_length, tile.row_length).setZero();
    return;
  }
  const T total = (vec(tile.query_row(call.dout, m), s.depth) * vec(tile.query_row(call.out, m), s.depth)).sum();
  const std::uint64_t element = s.dropout_row(tile.stream, tile.head, m);
  const auto slot_of_place = [&](std::int64_t place) {
    return element + static_cast<std::uint64_t>(options.max_distance - head.window + place);
  };

  const auto part = [&](T* w, T* d, std::int64_t length, std::uint64_t first_element) {
    auto weight = vec(w, length);
    auto gradient = vec(d, length);
    if (options.dropout.active()) {
      dropout_multipliers(call.random, options.dropout, first_element, length, scratch.multipliers);
      const auto kept = vec(static_cast<const T*>(scratch.multipliers), length);
      gradient = weight * (kept * gradient - total);
      weight *= kept;
    } else {
      gradient = weight * (gradient - total);
    }
  };
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
      if (options.dropout.active())
        dropout_multipliers(call.random, options.dropout, slot_of_place(begin), corners, scratch.multipliers);
      else
        gradient.setOnes();
      *dspan += static_cast<double>((share * (gradient * vec(band_dscores + begin, corners) - total)).sum());
    }
  }
  if (tile.columns > 0) {
    exponentials(band_weights + low, count, lse);
    for (std::int64_t place = low; place < head.full; ++place)
      band_weights[place] *= static_cast<T>(head.mask[static_cast<std::size_t>(place - head.visible)]);
    part(band_weights + low, band_dscores + low, count, slot_of_place(low));
    for (T* matrix : {scratch.weights, scratch.dscores}) tile.clear_outside(matrix, i, low);
  }
  if (tile.persistent > 0) {
    T* const weights = scratch.weights + i * tile.row_length;
    exponentials(weights, tile.persistent, lse);
    part(weights, scratch.dscores + i * tile.row_length, tile.persistent,
         element + static_cast<std::uint64_t>(s.dropout_reach));
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

  // Where the gradients of a part's keys or values are added; nullptr: nobody wants them.
  T* keys(const ColumnPart<T>& part) const {
    const AttentionGradients& wanted = call_.gradients;
    if (is_table(part)) return partial_.slot_keys;
    return wanted.past_keys || wanted.keys || partial_.slot_keys != nullptr ? keys_ : nullptr;
  }
  T* values(const ColumnPart<T>& part) const {
    const AttentionGradients& wanted = call_.gradients;
    if (is_table(part)) return partial_.slot_values;
    return wanted.past_values || wanted.values || partial_.slot_values != nullptr ? values_ : nullptr;
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
  bool is_table(const ColumnPart<T>& part) const {
    return slots_ == 0 && part.column < call_.data.plan.sizes.persistent;
  }
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

template <class T>
void backward_tile(const BackwardCall<T>& call, const AttentionTile<T>& tile, std::span<const ColumnPart<T>> parts,
                   const RowGradients<T>& rows, const Scratch<T>& scratch, const Partial<T>& partial) {
  const AttentionSizes& s = call.data.plan.sizes;
  const AttentionInputs& in = call.data.in;
  const AttentionGradients& gradients = call.gradients;
  const std::int64_t ld = tile.row_length, slots = tile.head_plan.slots;

  tile.compute_scores(parts, scratch.weights);
  tile.against(
      call.dout, parts, [](const auto& part) { return part.values; }, scratch.dscores);
  for (std::int64_t i = 0; i < tile.queries; ++i) backward_row(call, tile, i, scratch, partial.span);

  // Gradients of rows: [count, D] (add) factor times matrix^T queries.
  const auto into_rows = [&](const T* matrix, std::int64_t stride, std::int64_t count, const T* q, T factor, T* to) {
    if (to == nullptr) return;
    gemm(Gemm<T>{.transpose_a = Transpose::yes,
                 .m = count,
                 .n = s.depth,
                 .k = tile.queries,
                 .factor = factor,
                 .a = matrix,
                 .a_stride = stride,
                 .b = q,
                 .b_stride = s.depth,
                 .write = Write::add,
                 .c = to,
                 .c_stride = s.depth});
  };
  for (const ColumnPart<T>& part : parts) {
    into_rows(scratch.weights + part.column, ld, part.length, scratch.dout, part.values.factor, rows.values(part));
    into_rows(scratch.dscores + part.column, ld, part.length, scratch.query, part.keys.factor, rows.keys(part));
  }
  rows.spread_context(tile);

  // Gradients of the queries: [queries, D] (set or add) factor times matrix rows.
  const auto into_query = [&](T* to, Write& write, const T* matrix, std::int64_t stride, std::int64_t count,
                              const ScaledRows<T>& keys) {
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
  };
  Write content_write = gradients.content_query.write, position_write = gradients.position_query.write;
  T* const dcontent = call.of(gradients.content_query);
  if (dcontent != nullptr)
    for (const ColumnPart<T>& part : parts)
      into_query(dcontent, content_write, scratch.dscores + part.column, ld, part.length, part.keys);
  if (tile.columns == 0 || call.data.reversed_positions == nullptr) return;
  const auto score_scale = static_cast<T>(call.data.options.score_scale);
  const T* band = scratch.dscores + tile.band(0);
  const ScaledRows<T> positions{tile.position_rows(), score_scale};
  T* const dposition = in.position_query ? call.of(gradients.position_query) : dcontent;
  if (dposition != nullptr)
    into_query(dposition, in.position_query ? position_write : content_write, band, tile.band_stride(), slots,
               positions);
  into_rows(band, tile.band_stride(), slots, scratch.position_query, score_scale, partial.positions);
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
    const AttentionPlan plan(in, options, AttentionPass::backward);
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
          backward_tile(call, tile, rows.of(tile), row_gradients, Scratch<T>(mine, call, tile), partial);
        }
      row_gradients.finish_slots();
    });
    partials.finish(options);
  });
}

const bool bound = kernels::attention_backward.bind(DeviceKind::cpu, &attention_backward);

}  // namespace
}  // namespace engram::cpu
