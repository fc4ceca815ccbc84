#pragma once
/// What the forward and the backward pass of attention share: one tile's operands and its raw scores. A tile's scores
/// are a row-major matrix [queries, slot columns + columns]: persistent slots first, then the context.

#include <array>
#include <limits>

#include "cpu/attention/packed_tables.hpp"
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
  const PackedTables& packed;
  const T* content_query;
  const T* position_query;
  const T* query_spans;  ///< [B, M, H]; nullptr: every head has one span, or none
  ReversedTable<T> position_keys, position_values;

  AttentionData(const AttentionInputs& inputs, const AttentionOptions& opts, const AttentionPlan& heads,
                const ReversedTables<T>& tables, const PackedTables& packed_tables)
      : in(inputs),
        options(opts),
        plan(heads),
        packed(packed_tables),
        content_query(inputs.content_query.data<const T>()),
        position_query(inputs.position_query ? inputs.position_query.data<const T>() : content_query),
        query_spans(has_query_spans(inputs) && opts.ramp > 0 ? inputs.span.data<const T>() : nullptr),
        position_keys(tables.keys),
        position_values(tables.values) {}
};

/// What one query of a tile sees of its band, in places.
struct VisibleRow {
  std::int64_t low;   ///< first that it can see
  std::int64_t full;  ///< first from which on the mask is 1
  std::int64_t corner,
      corner_end;  ///< those that pass gradient to the span: one may lie before the first visible place
  BandMask mask;   ///< of the query's span
};

/// Evenly spaced rows, what multiplies their products, and the same rows packed.
template <class T>
struct ScaledRows {
  RowsAt<const T> rows;
  T factor;
  PackedRows packed = {};
  std::int64_t row = 0;  ///< the first one's number in `packed`

  ScaledRows from(std::int64_t first) const {
    return {{rows.data + first * rows.stride, rows.stride}, factor, packed, row + first};
  }
};

template <class T>
struct AttentionTile {
  const AttentionData<T>& data;
  const HeadPlan& head_plan;
  std::int64_t stream, head, first, queries;
  std::int64_t columns, slot_columns, row_length;
  std::int64_t first_place;  ///< of the bands: what lies before it matters to no query, nor to its span's gradient
  std::int64_t skipped;      ///< context columns at the left whose positions do not exist: not computed
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
        first_place(head_plan.edges.corner_begin),
        skipped(missing_columns()),
        runs(head_plan, query, queries, call.options.past_count, skipped),
        rounding(rounding_memory) {
    if (data.query_spans != nullptr) {
      first_place = head_plan.slots;
      for (std::int64_t i = 0; i < queries; ++i) first_place = std::min(first_place, edges(query_mask(i)).corner_begin);
    }
    // The last query sees farthest to the left of its own band.
    if (skipped > 0) first_place = std::max(first_place, std::min(first_valid(queries - 1), head_plan.slots - 1));
  }

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
  /// The rows of a position table that belong to this head's band.
  ScaledRows<T> position_keys(T factor) const {
    return {data.position_keys.of_head(data.plan, data.options, head), factor, data.packed.of(head).position_keys};
  }
  ScaledRows<T> position_values() const {
    return {data.position_values.of_head(data.plan, data.options, head), T(1), data.packed.of(head).position_values};
  }
  /// The place from which on a product meets packed positions, where `place` is the first that matters: those before
  /// it in its strip or tile come along, as weights and gradients of places that nobody sees are zero, and nobody looks
  /// at their scores.
  std::int64_t packed_place(std::int64_t place) const {
    return data.plan.packs ? place / kTileDepth * kTileDepth : place;
  }
  /// The row of the tile's first column in the copies of a stream's context (AttentionPlan::copies_streams).
  std::int64_t copied_row() const { return first + skipped; }
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
  /// Where the span of query number i is its own (data.query_spans): in a [B, M, H] tensor.
  std::int64_t span_element(std::int64_t i) const {
    const AttentionSizes& s = data.plan.sizes;
    return (stream * s.block + first + i) * s.heads + head;
  }
  BandMask query_mask(std::int64_t i) const {
    return head_plan.mask_of(data.options, static_cast<double>(data.query_spans[span_element(i)]));
  }
  SpanEdges edges(const BandMask& mask) const { return mask.edges(head_plan.slots, data.options.ramp_gradient); }
  /// What query number i of the tile sees.
  VisibleRow visible_row(std::int64_t i) const {
    const bool own_span = data.query_spans != nullptr;
    const BandMask mask = own_span ? query_mask(i) : head_plan.band_mask;
    const SpanEdges at = own_span ? edges(mask) : head_plan.edges;
    const std::int64_t valid = first_valid(i);
    return {std::min(std::max(at.visible, valid), head_plan.slots), at.full, std::max(at.corner_begin, valid),
            at.corner_end, mask};
  }
  /// Multiplies the visible places of the row's band with the mask where it is not 1.
  void apply_mask(const VisibleRow& row, T* band) const {
    if (data.query_spans == nullptr) {
      for (std::int64_t place = row.low; place < row.full; ++place)
        band[place] *= static_cast<T>(head_plan.mask[static_cast<std::size_t>(place - head_plan.edges.visible)]);
    } else {
      for (std::int64_t place = row.low; place < row.full; ++place) band[place] *= static_cast<T>(row.mask.raw(place));
    }
  }
  /// First place whose position exists.
  std::int64_t first_valid(std::int64_t i) const {
    return data.in.past_valid
               ? first_valid_place(head_plan, first + i, data.in.past_valid.template data<const std::int32_t>()[stream])
               : 0;
  }

  /// For tiles without persistent slots, whose columns would have to touch those of the context.
  std::int64_t missing_columns() const {
    const std::int64_t unit = data.plan.packs ? kTileDepth : 1;  // packed rows stay aligned
    return slot_columns > 0 || columns == 0 ? 0 : first_valid(0) / unit * unit;
  }

  /// to[i, :] (set or add) = factor times row i of the tile (of a [B, M, H D] tensor) against `count` rows.
  void against(const T* queries_tensor, const ScaledRows<T>& side, std::int64_t count, T* to, std::int64_t to_stride,
               Write write = Write::set) const {
    gemm(Gemm<T>{.transpose_b = Transpose::yes,
                 .m = queries,
                 .n = count,
                 .k = data.plan.sizes.depth,
                 .factor = side.factor,
                 .a = query_row(queries_tensor, first),
                 .a_stride = data.plan.sizes.width,
                 .b = side.rows.data,
                 .b_stride = side.rows.stride,
                 .write = write,
                 .c = to,
                 .c_stride = to_stride},
         rounding, side.packed.against(side.row));
  }
  /// to[band of i, :] (add) = row i of the tile (of a [B, M, H D] tensor) against positions, from first_place on, or
  /// from a few places before. `shared_distance` as in AttentionOptions.
  void against_positions(const T* queries_tensor, const ScaledRows<T>& positions, std::int64_t shared_distance,
                         T* to) const {
    std::int64_t own = first_place;  // the first place that no other shares its row with
    if (shared_distance > 0) own = std::max(own, std::min(head_plan.window - shared_distance + 1, head_plan.slots));
    if (own > first_place) {
      std::array<T, HeadPlan::kLargestTile> shared;
      against(queries_tensor, positions.from(first_place), 1, shared.data(), 1);
      for (std::int64_t i = 0; i < queries; ++i) {
        T* const row = to + band(i);
        const T score = shared[static_cast<std::size_t>(i)];
        for (std::int64_t place = first_place; place < own; ++place) row[place] += score;
      }
    } else {
      own = packed_place(own);
    }
    if (own < head_plan.slots)
      against(queries_tensor, positions.from(own), head_plan.slots - own, to + band(0) + own, band_stride(),
              Write::add);
  }
  /// scores[i, :] = scaled slot scores and scaled content scores, in the band also with position scores from
  /// first_place on. Context columns outside the band hold meaningless numbers.
  template <class Parts>
  void compute_scores(const Parts& parts, T* scores) const {
    for (const auto& part : parts)
      against(data.content_query, part.keys, part.length, scores + part.column, row_length);
    if (columns > 0 && data.position_keys)
      against_positions(data.position_query, position_keys(static_cast<T>(data.options.score_scale)),
                        data.options.shared_distance, scores);
  }

  static const T* past(const Tensor& tensor) { return tensor ? tensor.data<const T>() : nullptr; }
};

}  // namespace engram::cpu
