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
#include <vector>

#include "core/kernels/attention.hpp"
#include "core/span_mask.hpp"
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

/// What one head sees.
struct HeadPlan {
  std::int64_t window = 0;   ///< positions before the query
  std::int64_t slots = 0;    ///< context slots of one query: window + 1 - min_distance, 0 without context
  std::int64_t tile = 0;     ///< queries of one tile
  std::int64_t visible = 0;  ///< first place of the band whose mask is not 0
  std::int64_t full = 0;     ///< first place from which on the mask is 1
  std::int64_t corner_begin = 0, corner_end = 0;  ///< places that pass gradient to the span
  std::int64_t kept_first = 0, kept_row = 0;      ///< kept weights: the head's first element, elements of a row
  std::pmr::vector<double> mask;                  ///< of places visible .. full - 1
  bool masked = false;

  std::int64_t columns() const { return slots == 0 ? 0 : tile - 1 + slots; }

  /// `zeta` is ignored when there is no span mask.
  HeadPlan(const AttentionOptions& options, std::int64_t block, std::int64_t head_window, bool has_span, double zeta,
           std::pmr::memory_resource* memory)
      : window(head_window), mask(memory), masked(has_span && options.ramp > 0) {
    slots = options.max_distance == 0 ? 0 : std::max<std::int64_t>(0, window + 1 - options.min_distance);
    // Short windows waste less with short tiles; long tiles make better products.
    tile = std::min<std::int64_t>(block, slots > 0 && slots <= 128 ? 32 : 64);
    if (!masked) return;
    const double span = zeta * options.max_distance, ramp = options.ramp;
    const auto raw = [&](std::int64_t place) {
      return span_ramp(span, static_cast<double>(window - place - 1 + options.mask_offset), ramp);
    };
    while (visible < slots && raw(visible) <= 0) ++visible;
    full = visible;
    while (full < slots && raw(full) < 1) mask.push_back(raw(full++));
    const bool zero_counts = options.ramp_gradient != RampGradient::open;
    const bool one_counts = options.ramp_gradient == RampGradient::inclusive;
    corner_begin = visible;
    while (zero_counts && corner_begin > 0 && raw(corner_begin - 1) >= 0) --corner_begin;
    corner_end = full;
    while (one_counts && corner_end < slots && raw(corner_end) <= 1) ++corner_end;
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

  ColumnRuns(const HeadPlan& plan, std::int64_t first_query, std::int64_t queries, std::int64_t past_count) {
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
  /// Persistent slots that have columns in a tile's matrix. The backward pass, which needs no whole rows, meets tables
  /// that are too large to copy in runs of kSlotRun instead, so that everything stays in the caches.
  std::int64_t slot_columns = 0;
  static constexpr std::int64_t kSlotRun = 256;

  /// The backward pass gathers the context whatever the length of the block.
  AttentionPlan(Step& step, const AttentionInputs& in, const AttentionOptions& options, AttentionPass pass);

  /// For the products of all tiles.
  RoundingMemory rounding_memory(Step& step) const {
    const std::int64_t columns = std::max(scratch_columns, std::min(sizes.persistent, kSlotRun));
    return {step, scratch_tile, sizes.depth, std::max({columns, sizes.depth, scratch_tile}), max_threads()};
  }
};

/// Rows of the position table in order of decreasing distance, from options.windows.longest down to min_distance, so
/// that a band's scores are one product with consecutive rows. `out`: [rows, row_length].
template <class T>
void reverse_position_keys(const AttentionInputs& in, const AttentionOptions& options, T* out) {
  const std::int64_t length = in.position_keys.shape()[1];
  const std::int64_t rows = options.windows.longest + 1 - options.min_distance;
  const T* table = in.position_keys.data<const T>();
  for (std::int64_t r = 0; r < rows; ++r) std::copy_n(table + (rows - 1 - r) * length, length, out + r * length);
}

}  // namespace engram::cpu
