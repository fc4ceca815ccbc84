#pragma once
/// The keys and values that a tile's queries look at. They lie in several places (persistent slots, a past that may
/// wrap, the block) and are copied side by side, so that one product meets them all. Copying D numbers a column is
/// little beside the products of all queries with them. A head's tiles are met in order, stream by stream. Where rows
/// are packed (AttentionPlan::packs), those of a stream are, once for its tiles.

#include <array>
#include <span>

#include "cpu/attention/attention_tile.hpp"

namespace engram::cpu {

/// Consecutive columns of the tile's matrix.
template <class T>
struct ColumnPart {
  std::int64_t column, length;
  ScaledRows<T> keys, values;
};

/// Plain loops: rows of a few dozen numbers are over before an Eigen expression has found its alignment.
template <class T>
void scale_row(T* __restrict to, const T* __restrict from, std::int64_t count, T factor) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = factor * from[i];
}
template <class T>
void add_scaled_row(T* __restrict to, const T* __restrict from, std::int64_t count, T factor) {
  for (std::int64_t i = 0; i < count; ++i) to[i] += factor * from[i];
}

/// The rows of one head's tiles, as parts of the tile's columns that one product each can serve.
template <class T>
class AttentionRows {
 public:
  /// Elements of memory that one object needs.
  static std::int64_t size(const AttentionPlan& plan) { return 2 * plan.copied_rows * plan.sizes.depth; }
  /// Elements of memory for packed rows; 0: none are.
  static std::int64_t packed_size(const AttentionPlan& plan, const PassUses& uses) {
    const std::int64_t rows = plan.packs ? plan.copied_rows : 0, depth = plan.sizes.depth;
    return PackedRows::size(rows, depth, uses.keys) + PackedRows::size(rows, depth, uses.values);
  }
  /// The memory is the object's for its life. Serves tiles of one head; `end`: after the last of them, as their number
  /// over all streams.
  AttentionRows(const AttentionData<T>& data, std::int64_t head, const PassUses& uses, std::int64_t end, T* memory,
                bf16* packed_memory)
      : data_(data),
        uses_(uses),
        last_tile_(end - 1),
        keys_(memory),
        values_(memory + data.plan.copied_rows * data.plan.sizes.depth),
        packed_memory_(packed_memory) {
    const AttentionSizes& s = data.plan.sizes;
    if (s.persistent == 0) return;
    const std::int64_t size = s.persistent * s.depth;
    const T* keys = data.in.slot_keys.template data<const T>() + head * size;
    const T* values = data.in.slot_values.template data<const T>() + head * size;
    const auto key_factor = static_cast<T>(data.options.slot_score_scale);
    const auto value_factor = static_cast<T>(data.options.slot_value_scale);
    if (data.plan.gathers_slots) {
      vec(keys_, size) = key_factor * vec(keys, size);
      vec(values_, size) = value_factor * vec(values, size);
      gathered_slots_ = s.persistent;
    } else {
      const HeadTables& packed = data.packed.of(head);
      table_ = {0,
                s.persistent,
                {{keys, s.depth}, key_factor, packed.slot_keys},
                {{values, s.depth}, value_factor, packed.slot_values}};
    }
  }

  /// The persistent slots where they lie; of length 0 when they are copied, or there are none.
  const ColumnPart<T>& table() const { return table_; }

  /// The columns of the tile's matrix, from the left; good until the next call.
  std::span<const ColumnPart<T>> of(const AttentionTile<T>& tile) {
    const AttentionInputs& in = data_.in;
    const std::int64_t depth = data_.plan.sizes.depth;
    std::size_t count = 0;
    if (table_.length > 0 && tile.slot_columns > 0) parts_[count++] = table_;
    if (data_.plan.gathers_context) {
      const std::int64_t first = data_.plan.copies_streams() ? copy_of_stream(tile) : copy_of_tile(tile);
      const std::int64_t length = gathered_slots_ + tile.columns - tile.skipped;
      if (length > 0)
        parts_[count++] = {tile.slot_columns - gathered_slots_ + tile.skipped,
                           length,
                           {{keys_ + first * depth, depth}, T(1), packed_keys_, first - packed_row_},
                           {{values_ + first * depth, depth}, T(1), packed_values_, first - packed_row_}};
    } else {
      const auto score_scale = static_cast<T>(data_.options.score_scale);
      for (const ColumnRun& run : tile.runs)
        parts_[count++] = {tile.slot_columns + run.column,
                           run.length,
                           {tile.run_rows(run, tile.past(in.past_keys), in.keys.template data<const T>()), score_scale},
                           {tile.run_rows(run, tile.past(in.past_values), in.values.template data<const T>()), T(1)}};
    }
    return {parts_.data(), count};
  }

 private:
  /// Columns of the runs from `column` on, to row `row` and the next of the copies.
  void copy(const AttentionTile<T>& tile, const ColumnRuns& runs, std::int64_t column, std::int64_t row) {
    const AttentionInputs& in = data_.in;
    const std::int64_t depth = data_.plan.sizes.depth;
    const auto score_scale = static_cast<T>(data_.options.score_scale);
    T *keys = keys_ + row * depth, *values = values_ + row * depth;
    for (const ColumnRun& run : runs) {
      const auto from_keys = tile.run_rows(run, tile.past(in.past_keys), in.keys.template data<const T>());
      const auto from_values = tile.run_rows(run, tile.past(in.past_values), in.values.template data<const T>());
      for (std::int64_t i = std::max<std::int64_t>(0, column - run.column); i < run.length; ++i) {
        scale_row(keys, from_keys.data + i * from_keys.stride, depth, score_scale);
        std::copy_n(from_values.data + i * from_values.stride, depth, values);
        keys += depth;
        values += depth;
      }
    }
  }
  /// Behind the slots. Returns the first row of the tile's columns, slots included.
  std::int64_t copy_of_tile(const AttentionTile<T>& tile) {
    copy(tile, tile.runs, 0, gathered_slots_);
    return 0;
  }
  /// What the tiles before have not left there: most of a tile's columns are those of the one before, a tile farther
  /// on.
  std::int64_t copy_of_stream(const AttentionTile<T>& tile) {
    const std::int64_t first = tile.copied_row(), end = tile.first + tile.columns;
    if (tile.stream != stream_ || first < begin_ || first > end_) {
      stream_ = tile.stream;
      begin_ = end_ = first;
    }
    if (data_.plan.packs) return pack_stream(tile, first);
    copy(tile, tile.runs, end_ - tile.first, end_);
    end_ = std::max(end_, end);
    return first;
  }
  /// All rows that this object's tiles of the stream look at, from the first of them on, unless they are there.
  std::int64_t pack_stream(const AttentionTile<T>& tile, std::int64_t first) {
    if (end_ > begin_ || tile.columns == 0) return first;
    const AttentionPlan& plan = data_.plan;
    const HeadPlan& head = tile.head_plan;
    const std::int64_t tiles = (plan.sizes.block + head.tile - 1) / head.tile, last = last_tile_ - tile.stream * tiles;
    const std::int64_t queries = std::min((std::min(last, tiles - 1) + 1) * head.tile, plan.sizes.block) - tile.first;
    const std::int64_t rows = queries - 1 + head.slots - tile.skipped, depth = plan.sizes.depth;
    copy(tile, ColumnRuns(head, tile.first, queries, data_.options.past_count, tile.skipped), 0, first);
    end_ = first + rows;
    packed_row_ = first;
    packed_keys_ = {rows, depth, uses_.keys, packed_memory_};
    packed_values_ = {rows, depth, uses_.values, packed_memory_ + PackedRows::size(rows, depth, uses_.keys)};
    packed_keys_.pack(keys_ + first * depth, depth);
    packed_values_.pack(values_ + first * depth, depth);
    return first;
  }

  const AttentionData<T>& data_;
  PassUses uses_;
  std::int64_t last_tile_;
  T *keys_, *values_;  // [slots and context of a tile, or context of a stream; D], scaled
  std::int64_t gathered_slots_ = 0;
  std::int64_t stream_ = -1, begin_ = 0, end_ = 0;  // rows of a stream that are there
  bf16* packed_memory_;
  PackedRows packed_keys_, packed_values_;  // of a stream, from row packed_row_ on
  std::int64_t packed_row_ = 0;
  ColumnPart<T> table_{};
  std::array<ColumnPart<T>, 4> parts_{};
};

}  // namespace engram::cpu
