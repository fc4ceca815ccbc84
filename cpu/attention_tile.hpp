#pragma once
/// What the forward and the backward pass of attention share: one tile's operands and its raw scores. A tile's scores
/// are a row-major matrix [queries, columns + N]: context columns first, then the persistent slots.

#include <limits>

#include "cpu/attention_plan.hpp"
#include "cpu/gemm.hpp"
#include "cpu/vec.hpp"

namespace engram::cpu {

/// The tensors of one call as plain pointers.
template <class T>
struct AttentionData {
  const AttentionInputs& in;
  const AttentionOptions& options;
  const AttentionPlan& plan;
  const T* content_query;
  const T* position_query;
  const T* reversed_positions;           ///< nullptr: none
  std::int64_t position_row_length = 0;  ///< depth, or heads * depth

  AttentionData(const AttentionInputs& inputs, const AttentionOptions& opts, const AttentionPlan& heads,
                const T* reversed)
      : in(inputs),
        options(opts),
        plan(heads),
        content_query(inputs.content_query.data<const T>()),
        position_query(inputs.position_query ? inputs.position_query.data<const T>() : content_query),
        reversed_positions(reversed),
        position_row_length(inputs.position_keys ? inputs.position_keys.shape()[1] : 0) {}
};

/// Evenly spaced rows in memory.
template <class T>
struct RowsAt {
  T* data;
  std::int64_t stride;
};

template <class T>
struct AttentionTile {
  const AttentionData<T>& data;
  const HeadPlan& head_plan;
  std::int64_t stream, head, first, queries;
  std::int64_t columns, persistent, row_length;
  ColumnRuns runs;

  AttentionTile(const AttentionData<T>& call, std::int64_t stream_index, std::int64_t head_index, std::int64_t query)
      : data(call),
        head_plan(call.plan.heads[static_cast<std::size_t>(head_index)]),
        stream(stream_index),
        head(head_index),
        first(query),
        queries(std::min(head_plan.tile, call.plan.sizes.block - query)),
        columns(head_plan.slots == 0 ? 0 : queries - 1 + head_plan.slots),
        persistent(call.plan.sizes.persistent),
        row_length(columns + persistent),
        runs(head_plan, query, queries, call.options.past_count) {}

  /// Query m of this tile's head and stream in a [B, M, H D] tensor.
  template <class U>
  U* query_row(U* tensor, std::int64_t m) const {
    const AttentionSizes& s = data.plan.sizes;
    return tensor + (stream * s.block + m) * s.width + head * s.depth;
  }
  /// The rows of a run: `past` is a packed past, `block` a [B, M, H D] tensor.
  template <class U>
  RowsAt<U> run_rows(const ColumnRun& run, U* past, U* block) const {
    const AttentionSizes& s = data.plan.sizes;
    if (!run.past) return {query_row(block, run.row), s.width};
    const std::int64_t start = s.streams * data.options.windows.first[static_cast<std::size_t>(head)];
    return {past + (start + stream * head_plan.window + run.row) * s.depth, s.depth};
  }
  /// Reversed position keys of this head's band.
  RowsAt<const T> position_rows() const {
    const std::int64_t skipped = data.options.windows.longest - head_plan.window;
    const std::int64_t column = data.position_row_length == data.plan.sizes.depth ? 0 : head * data.plan.sizes.depth;
    return {data.reversed_positions + skipped * data.position_row_length + column, data.position_row_length};
  }
  /// A head's slot table inside [H, N, D].
  template <class U>
  U* slots_of(U* table) const {
    return table + head * persistent * data.plan.sizes.depth;
  }
  /// First place of the band that query number i of the tile can see.
  std::int64_t first_visible(std::int64_t i) const {
    std::int64_t place = head_plan.visible;
    if (data.in.past_valid)
      place = std::max(place, first_valid_place(head_plan, first + i,
                                                data.in.past_valid.template data<const std::int32_t>()[stream]));
    return std::min(place, head_plan.slots);
  }

  /// scores[i, :] = scaled content scores (band columns also with position scores from first_visible on) and scaled
  /// slot scores. `positions`: scratch [queries, slots]. Columns outside the band hold meaningless numbers.
  void compute_scores(T* scores, T* positions) const {
    const AttentionSizes& s = data.plan.sizes;
    const auto scale = static_cast<T>(data.options.score_scale);
    const T* query = query_row(data.content_query, first);
    const auto against = [&](const T* rows, std::int64_t count, std::int64_t stride, T factor, const T* q, T* to,
                             std::int64_t to_stride) {
      gemm(Gemm<T>{.transpose_b = Transpose::yes,
                   .m = queries,
                   .n = count,
                   .k = s.depth,
                   .factor = factor,
                   .a = q,
                   .a_stride = s.width,
                   .b = rows,
                   .b_stride = stride,
                   .c = to,
                   .c_stride = to_stride});
    };
    for (const ColumnRun& run : runs) {
      const auto keys = run_rows(run, past(data.in.past_keys), data.in.keys.template data<const T>());
      against(keys.data, run.length, keys.stride, scale, query, scores + run.column, row_length);
    }
    if (persistent > 0)
      against(slots_of(data.in.slot_keys.template data<const T>()), persistent, s.depth,
              static_cast<T>(data.options.slot_score_scale), query, scores + columns, row_length);
    if (columns == 0 || data.reversed_positions == nullptr) return;
    const auto rows = position_rows();
    // Masked places are not needed, except where the span's gradient looks at a corner.
    const std::int64_t from = head_plan.masked ? std::min(head_plan.visible, head_plan.corner_begin) : 0;
    against(rows.data + from * rows.stride, head_plan.slots - from, rows.stride, scale,
            query_row(data.position_query, first), positions + from, head_plan.slots);
    for (std::int64_t i = 0; i < queries; ++i)
      vec(scores + i * row_length + i + from, head_plan.slots - from) +=
          vec(static_cast<const T*>(positions) + i * head_plan.slots + from, head_plan.slots - from);
  }

  static const T* past(const Tensor& tensor) { return tensor ? tensor.data<const T>() : nullptr; }
};

}  // namespace engram::cpu
