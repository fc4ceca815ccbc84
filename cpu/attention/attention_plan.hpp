#pragma once
/// Geometry of the tiled attention on the CPU. A tile is a run of queries of one stream and head. Its context columns
/// are consecutive positions c, counted from the start of the block (negative: the past); query m sees the band
/// c = m - window .. m - min_distance, so row i of the tile sees columns i .. i + slots - 1. The place p of a column
/// inside the band belongs to distance window - p. In the tile's matrix the persistent slots come first.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory_resource>
#include <optional>
#include <vector>

#include "core/kernels/attention.hpp"
#include "core/rules/span_mask.hpp"
#include "cpu/parallel.hpp"
#include "cpu/rounded_gemm.hpp"

namespace engram::cpu {

/// Sizes that do not depend on the head.
struct AttentionSizes {
  std::int64_t streams, block, heads, depth, width, persistent;
  std::int64_t dropout_reach, dropout_stride;

  AttentionSizes(const AttentionInputs& in, const AttentionOptions& options)
      : streams(in.content_query.shape()[0]),
        block(in.content_query.shape()[1]),
        heads(options.heads),
        depth(in.content_query.shape()[2] / options.heads),
        width(in.content_query.shape()[2]),
        persistent(in.slot_keys ? in.slot_keys.shape()[1] : 0),
        dropout_reach((options.max_distance + 1 - options.min_distance + 7) / 8 * 8),
        dropout_stride((dropout_reach + persistent + 7) / 8 * 8) {}

  /// Number of the first random element of a query's row.
  std::uint64_t dropout_row(std::int64_t stream, std::int64_t head, std::int64_t query) const {
    return static_cast<std::uint64_t>(((stream * heads + head) * block + query) * dropout_stride);
  }
};

/// Where a span's mask changes along a band, in places.
struct SpanEdges {
  std::int64_t visible = 0;                       ///< first place whose mask is not 0
  std::int64_t full = 0;                          ///< first place from which on the mask is 1
  std::int64_t corner_begin = 0, corner_end = 0;  ///< places that pass gradient to the span
};

/// The mask of one span along a band.
struct BandMask {
  double span = 0, ramp = 1;  ///< positions
  std::int64_t last = 0;      ///< the mask's argument at place 0; it falls by one with every place

  /// Before clamping; grows with the place.
  double raw(std::int64_t place) const { return span_ramp(span, static_cast<double>(last - place), ramp); }

  /// Of a band of `slots` places. Costs the same for every length: each edge lies a place or two from where it is
  /// first looked for.
  SpanEdges edges(std::int64_t slots, RampGradient rule) const {
    // The first place whose argument is at most x (rounded; not a number: 0).
    const auto near = [&](double x) {
      const double place = static_cast<double>(last) - x;
      return !(place > 0) ? 0 : place < static_cast<double>(slots) ? static_cast<std::int64_t>(place) : slots;
    };
    SpanEdges edges;
    edges.visible = near(span + ramp);
    while (edges.visible > 0 && raw(edges.visible - 1) > 0) --edges.visible;
    while (edges.visible < slots && raw(edges.visible) <= 0) ++edges.visible;
    edges.full = std::max(edges.visible, near(span));
    while (edges.full > edges.visible && raw(edges.full - 1) >= 1) --edges.full;
    while (edges.full < slots && raw(edges.full) < 1) ++edges.full;
    edges.corner_begin = edges.visible;
    if (rule != RampGradient::open)
      while (edges.corner_begin > 0 && raw(edges.corner_begin - 1) >= 0) --edges.corner_begin;
    edges.corner_end = edges.full;
    if (rule == RampGradient::inclusive)
      while (edges.corner_end < slots && raw(edges.corner_end) <= 1) ++edges.corner_end;
    return edges;
  }
};

/// What one head sees.
struct HeadPlan {
  static constexpr std::int64_t kLargestTile = 64;

  std::int64_t window = 0;  ///< positions before the query
  std::int64_t slots = 0;   ///< context slots of one query: window + 1 - min_distance, 0 without context
  std::int64_t tile = 0;    ///< queries of one tile
  SpanEdges edges;          ///< of the head's span
  BandMask band_mask;       ///< of the head's span
  std::int64_t kept_first = 0, kept_row = 0;  ///< kept weights: the head's first element, elements of a row
  std::pmr::vector<double> mask;              ///< of places edges.visible .. edges.full - 1

  std::int64_t columns() const { return slots == 0 ? 0 : tile - 1 + slots; }

  /// Without a span of the head every place is visible in full.
  HeadPlan(const AttentionOptions& options, std::int64_t block, std::int64_t head_window, std::optional<double> zeta,
           std::pmr::memory_resource* memory)
      : window(head_window), mask(memory) {
    slots = options.max_distance == 0 ? 0 : std::max<std::int64_t>(0, window + 1 - options.min_distance);
    // Short windows waste less with short tiles; long tiles make better products.
    tile = std::min<std::int64_t>(block, slots > 0 && slots <= 128 ? 32 : kLargestTile);
    if (!zeta || options.ramp == 0) return;
    band_mask = mask_of(options, *zeta);
    edges = band_mask.edges(slots, options.ramp_gradient);
    for (std::int64_t place = edges.visible; place < edges.full; ++place) mask.push_back(band_mask.raw(place));
  }
  /// The mask of another span over this head's band.
  BandMask mask_of(const AttentionOptions& options, double zeta) const {
    return {zeta * options.max_distance, static_cast<double>(options.ramp), window - 1 + options.mask_offset};
  }
};

/// The distance of rows in a tile's matrix. A multiple of 256, of rows or of bands (one more), halves the rate of
/// products that read the matrix along its columns (cpu/colliding_rows.hpp).
constexpr std::int64_t matrix_row_length(std::int64_t columns) {
  return (columns + 1) % 256 <= 1 ? columns + 16 : columns;
}

/// Consecutive columns of a tile whose rows of keys (or values) are evenly spaced in memory.
struct ColumnRun {
  std::int64_t column = 0, length = 0;
  bool past = false;
  std::int64_t row = 0;  ///< of the first column: in the head's past of the stream, or in the block
};

/// At most three: the past (two pieces when its ring wraps) and the block.
struct ColumnRuns {
  std::array<ColumnRun, 3> run;
  int count = 0;

  /// Without the first `skipped` columns, at most as many as a query's places.
  ColumnRuns(const HeadPlan& plan, std::int64_t first_query, std::int64_t queries, std::int64_t past_count,
             std::int64_t skipped = 0) {
    if (plan.slots == 0) return;
    const std::int64_t columns = queries - 1 + plan.slots;
    const std::int64_t past = std::clamp<std::int64_t>(plan.window - first_query, 0, columns);
    if (past > 0) {
      const std::int64_t start = (past_count + first_query) % plan.window;
      const std::int64_t unwrapped = std::min(past, plan.window - start);
      run[count++] = {0, unwrapped, true, start};
      if (unwrapped < past) run[count++] = {unwrapped, past - unwrapped, true, 0};
    }
    if (past < columns) run[count++] = {past, columns - past, false, first_query - plan.window + past};
    int kept = 0;
    for (int i = 0; i < count; ++i) {
      ColumnRun part = run[static_cast<std::size_t>(i)];
      const std::int64_t left = std::clamp<std::int64_t>(skipped - part.column, 0, part.length);
      part.column += left;
      part.row += left;
      part.length -= left;
      if (part.length > 0) run[static_cast<std::size_t>(kept++)] = part;
    }
    count = kept;
  }
  const ColumnRun* begin() const { return run.data(); }
  const ColumnRun* end() const { return run.data() + count; }
};

/// First place of the band that a query may see when only `valid` past positions exist.
inline std::int64_t first_valid_place(const HeadPlan& plan, std::int64_t query, std::int64_t valid) {
  return std::clamp<std::int64_t>(plan.window - query - valid, 0, plan.slots);
}

enum class AttentionPass : std::uint8_t { forward, backward };

/// All heads, the order that puts the longest work first, and whose rows are copied together (attention_rows.hpp).
struct AttentionPlan {
  AttentionSizes sizes;
  std::pmr::vector<HeadPlan> heads;
  std::pmr::vector<int> longest_first;
  std::int64_t scratch_columns = 0;  ///< row length of the widest tile's matrix
  std::int64_t scratch_tile = 0;
  bool gathers_context = false;  ///< long enough blocks: one product costs less than one for every run of columns
  bool gathers_slots = false;    ///< small tables too
  /// Rows that several tiles meet are rounded and packed once (packed_tables.hpp, AttentionRows), slots apart from the
  /// context.
  bool packs = false;
  std::int64_t copied_rows = 0;  ///< keys, and values, that the copies of one head need memory for
  /// Persistent slots that have columns in a tile's matrix. The backward pass, which needs no whole rows, meets tables
  /// that are too large to copy in runs of kSlotRun instead, so that everything stays in the caches.
  std::int64_t slot_columns = 0;
  static constexpr std::int64_t kSlotRun = 256;

  /// The backward pass gathers the context whatever the length of the block.
  AttentionPlan(Step& step, const AttentionInputs& in, const AttentionOptions& options, AttentionPass pass);

  /// Whether a stream's context is copied once: its tiles look at a part each. Where small tables of slots are copied
  /// as well, each tile has its part right after them, so that one product meets both.
  bool copies_streams() const { return gathers_context && (sizes.persistent == 0 || !gathers_slots); }

  /// For the products of all tiles.
  RoundingMemory rounding_memory(Step& step) const {
    const std::int64_t columns = std::max(scratch_columns, std::min(sizes.persistent, kSlotRun));
    return {step, scratch_tile, sizes.depth, std::max({columns, sizes.depth, scratch_tile}), max_threads()};
  }
};

/// Evenly spaced rows in memory.
template <class T>
struct RowsAt {
  T* data;
  std::int64_t stride;
};

/// A position table with its rows in order of decreasing distance, from options.windows.longest down to min_distance,
/// so that a band's scores are one product with consecutive rows.
template <class T>
struct ReversedTable {
  const T* rows = nullptr;      ///< nullptr: no table, or no distances
  std::int64_t row_length = 0;  ///< D, or H D

  explicit operator bool() const { return rows != nullptr; }
  /// The rows that belong to a head's band.
  RowsAt<const T> of_head(const AttentionPlan& plan, const AttentionOptions& options, std::int64_t head) const {
    const std::int64_t unused = options.windows.longest - plan.heads[static_cast<std::size_t>(head)].window;
    const std::int64_t column = row_length == plan.sizes.depth ? 0 : head * plan.sizes.depth;
    return {rows + unused * row_length + column, row_length};
  }
};

/// The position tables of one call. A table that serves both sides is reversed once.
template <class T>
class ReversedTables {
 public:
  ReversedTable<T> keys, values;

  ReversedTables(Step& step, const AttentionInputs& in, const AttentionOptions& options)
      : rows_(options.max_distance == 0
                  ? 0
                  : std::max<std::int64_t>(0, options.windows.longest + 1 - options.min_distance)),
        one_table_(in.position_keys && in.position_values && in.position_keys.raw() == in.position_values.raw() &&
                   in.position_keys.shape() == in.position_values.shape()),
        memory_(step.workspace(sizeof(T) * static_cast<std::size_t>(size(in.position_keys) +
                                                                    (one_table_ ? 0 : size(in.position_values))))) {
    T* const first = memory_.template data<T>();
    keys = reverse(step, in.position_keys, first);
    values = one_table_ ? keys : reverse(step, in.position_values, first + size(in.position_keys));
  }

 private:
  /// Elements, rounded up to whole cache lines.
  std::int64_t size(const Tensor& table) const { return table ? (rows_ * table.shape()[1] + 63) / 64 * 64 : 0; }
  ReversedTable<T> reverse(const Step& step, const Tensor& table, T* to) const {
    if (!table || rows_ == 0) return {};
    const std::int64_t length = table.shape()[1];
    const T* from = table.data<const T>();
    for (std::int64_t r = 0; r < rows_ && step.computes(); ++r)
      std::copy_n(from + (rows_ - 1 - r) * length, length, to + r * length);
    return {to, length};
  }

  std::int64_t rows_;
  bool one_table_;
  Workspace memory_;
};

}  // namespace engram::cpu
