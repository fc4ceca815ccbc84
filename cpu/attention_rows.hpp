#pragma once
/// The keys and values that a tile's queries look at. They lie in several places (persistent slots, a past that may
/// wrap, the block) and are copied side by side, so that one product meets them all. Copying D numbers a column is
/// little beside the products of all queries with them.

#include <array>
#include <span>

#include "cpu/attention_tile.hpp"

namespace engram::cpu {

/// Evenly spaced rows and what multiplies their products.
template <class T>
struct ScaledRows {
  RowsAt<const T> rows;
  T factor;
};

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
  static std::int64_t size(const AttentionPlan& plan) {
    return plan.gathers_context ? 2 * plan.scratch_columns * plan.sizes.depth : 0;
  }
  /// `memory` is the object's for its life. Serves all tiles of one head.
  AttentionRows(const AttentionData<T>& data, std::int64_t head, T* memory)
      : data_(data), keys_(memory), values_(memory + data.plan.scratch_columns * data.plan.sizes.depth) {
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
      table_ = {0, s.persistent, {{keys, s.depth}, key_factor}, {{values, s.depth}, value_factor}};
    }
  }

  /// The persistent slots where they lie; of length 0 when they are copied, or there are none.
  const ColumnPart<T>& table() const { return table_; }

  /// The columns of the tile's matrix, from the left; good until the next call.
  std::span<const ColumnPart<T>> of(const AttentionTile<T>& tile) {
    const AttentionInputs& in = data_.in;
    const std::int64_t depth = data_.plan.sizes.depth;
    const auto score_scale = static_cast<T>(data_.options.score_scale);
    std::size_t count = 0;
    if (table_.length > 0 && tile.slot_columns > 0) parts_[count++] = table_;
    if (data_.plan.gathers_context) {
      T *keys = keys_ + gathered_slots_ * depth, *values = values_ + gathered_slots_ * depth;
      for (const ColumnRun& run : tile.runs) {
        auto from_keys = tile.run_rows(run, tile.past(in.past_keys), in.keys.template data<const T>());
        auto from_values = tile.run_rows(run, tile.past(in.past_values), in.values.template data<const T>());
        for (std::int64_t row = 0; row < run.length; ++row, keys += depth, values += depth) {
          scale_row(keys, from_keys.data + row * from_keys.stride, depth, score_scale);
          std::copy_n(from_values.data + row * from_values.stride, depth, values);
        }
      }
      const std::int64_t length = gathered_slots_ + tile.columns - tile.skipped;
      if (length > 0)
        parts_[count++] = {tile.slot_columns - gathered_slots_ + tile.skipped,
                           length,
                           {{keys_, depth}, T(1)},
                           {{values_, depth}, T(1)}};
    } else {
      for (const ColumnRun& run : tile.runs)
        parts_[count++] = {tile.slot_columns + run.column,
                           run.length,
                           {tile.run_rows(run, tile.past(in.past_keys), in.keys.template data<const T>()), score_scale},
                           {tile.run_rows(run, tile.past(in.past_values), in.values.template data<const T>()), T(1)}};
    }
    return {parts_.data(), count};
  }

 private:
  const AttentionData<T>& data_;
  T *keys_, *values_;  // [slots and context of a tile, D], scaled
  std::int64_t gathered_slots_ = 0;
  ColumnPart<T> table_{};
  std::array<ColumnPart<T>, 4> parts_{};
};

}  // namespace engram::cpu
