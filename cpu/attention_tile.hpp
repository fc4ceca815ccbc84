#pragma once
/// What the forward and the backward pass of attention share: one tile's operands and its raw scores. A tile's scores
/// are a row-major matrix [queries, slot columns + columns]: persistent slots first, then the context.

#include <limits>

#include "cpu/attention_plan.hpp"
#include "cpu/vec.hpp"

namespace engram::cpu {

/// In the span's gradient: a slot outside the mask is not part of lse.
template <class T>
constexpr T kLargestCornerExponent = 18;

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
  std::int64_t columns, slot_columns, row_length;
  ColumnRuns runs;
  void* rounding;  ///< memory of the thread for products of rounded operands; nullptr: not rounded

  AttentionTile(const AttentionData<T>& call, std::int64_t stream_index, std::int64_t head_index, std::int64_t query,
                void* rounding_memory)
      : data(call),
        head_plan(call.plan.heads[static_cast<std::size_t>(head_index)]),
        stream(stream_index),
        head(head_index),
        first(query),
        queries(std::min(head_plan.tile, call.plan.sizes.block - query)),
        columns(head_plan.slots == 0 ? 0 : queries - 1 + head_plan.slots),
        slot_columns(call.plan.slot_columns),
        // Of a whole tile, so that a shorter last one does not need more.
        row_length(matrix_row_length(head_plan.columns() + slot_columns)),
        runs(head_plan, query, queries, call.options.past_count),
        rounding(rounding_memory) {}

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
  /// Where the band of query number i starts in the tile's matrix.
  std::int64_t band(std::int64_t i) const { return i * band_stride() + slot_columns; }
  /// With this stride the bands are a matrix [queries, slots] whose columns are places: places line up, not positions.
  std::int64_t band_stride() const { return row_length + 1; }
  /// Clears what lies beside the places from `low` on of row i.
  void clear_outside(T* matrix, std::int64_t i, std::int64_t low) const {
    T* const row = matrix + i * row_length;
    std::fill(row + slot_columns, matrix + band(i) + low, T(0));
    std::fill(matrix + band(i) + head_plan.slots, row + row_length, T(0));
  }
  /// The row of query number i in the weights kept for the backward pass; nullptr when there are none.
  template <class U>
  U* kept_row(U* kept, std::int64_t i) const {
    if (kept == nullptr) return nullptr;
    const AttentionSizes& s = data.plan.sizes;
    return kept + head_plan.kept_first + (stream * s.block + first + i) * head_plan.kept_row;
  }
  /// First place of the band that query number i of the tile can see.
  std::int64_t first_visible(std::int64_t i) const {
    return std::min(std::max(head_plan.visible, first_valid(i)), head_plan.slots);
  }
  /// First place that passes gradient to the span: a corner of the ramp may lie before the first visible place.
  std::int64_t first_corner(std::int64_t i) const { return std::max(head_plan.corner_begin, first_valid(i)); }
  /// First place whose position exists.
  std::int64_t first_valid(std::int64_t i) const {
    return data.in.past_valid
               ? first_valid_place(head_plan, first + i, data.in.past_valid.template data<const std::int32_t>()[stream])
               : 0;
  }

  /// to[i, :] (set) = factor times row i of the tile (of a [B, M, H D] tensor) against `count` rows.
  template <class Scaled>
  void against(const T* queries_tensor, const Scaled& side, std::int64_t count, T* to, std::int64_t to_stride) const {
    gemm(Gemm<T>{.transpose_b = Transpose::yes,
                 .m = queries,
                 .n = count,
                 .k = data.plan.sizes.depth,
                 .factor = side.factor,
                 .a = query_row(queries_tensor, first),
                 .a_stride = data.plan.sizes.width,
                 .b = side.rows.data,
                 .b_stride = side.rows.stride,
                 .c = to,
                 .c_stride = to_stride},
         rounding);
  }
  /// scores[i, :] = scaled slot scores and scaled content scores, in the band also with position scores from
  /// first_visible on. Context columns outside the band hold meaningless numbers.
  template <class Parts>
  void compute_scores(const Parts& parts, T* scores) const {
    for (const auto& part : parts)
      against(data.content_query, part.keys, part.length, scores + part.column, row_length);
    if (columns == 0 || data.reversed_positions == nullptr) return;
    const auto rows = position_rows();
    // Masked places are not needed, except where the span's gradient looks at a corner.
    const std::int64_t from = head_plan.masked ? std::min(head_plan.visible, head_plan.corner_begin) : 0;
    gemm(Gemm<T>{.transpose_b = Transpose::yes,
                 .m = queries,
                 .n = head_plan.slots - from,
                 .k = data.plan.sizes.depth,
                 .factor = static_cast<T>(data.options.score_scale),
                 .a = query_row(data.position_query, first),
                 .a_stride = data.plan.sizes.width,
                 .b = rows.data + from * rows.stride,
                 .b_stride = rows.stride,
                 .write = Write::add,
                 .c = scores + band(0) + from,
                 .c_stride = band_stride()},
         rounding);
  }

  static const T* past(const Tensor& tensor) { return tensor ? tensor.data<const T>() : nullptr; }
};

}  // namespace engram::cpu
