#pragma once
/// What both passes of a recurrent layer share: sizes, which states exist, the weight packed once for all steps, and
/// the rows that the next step's product reads.

#include <numeric>
#include <optional>

#include "core/bf16.hpp"
#include "core/kernels/recurrence.hpp"
#include "cpu/colliding_rows.hpp"
#include "cpu/packed_columns.hpp"
#include "cpu/parallel.hpp"
#include "cpu/recurrence_lanes.hpp"

namespace engram::cpu {

/// Streams B, steps M, units k, order N, matrices G; rows of states before the first step.
struct RecurrenceSizes {
  std::int64_t streams, steps, units, order, matrices, inputs, hidden_rows, cell_rows;

  RecurrenceSizes(const RecurrenceInputs& in, const Tensor& outputs)
      : streams(outputs.shape()[0]),
        steps(outputs.shape()[1]),
        units(outputs.shape()[2]),
        order(in.options.history()),
        matrices(in.options.weight_blocks()),
        inputs(in.options.input_blocks()),
        hidden_rows(in.hidden.shape()[1]),
        cell_rows(in.cells.shape()[1]) {}
  /// Where products of one state with all matrices are kept, those of s = -order, ..., steps - 2.
  std::int64_t product_rows() const { return order + steps - 1; }
};

/// Whether states before a step exist.
class EarlierStates {
 public:
  EarlierStates(const RecurrenceInputs& in, const RecurrenceSizes& sizes)
      : preceding_(in.preceding.data<const std::int32_t>()),
        steps_(sizes.steps),
        hidden_rows_(sizes.hidden_rows),
        cell_rows_(sizes.cell_rows) {}
  bool in_sequence(std::int64_t stream, std::int64_t t, std::int64_t delay) const {
    return preceding_[stream * steps_ + t] >= delay;
  }
  bool hidden(std::int64_t stream, std::int64_t t, std::int64_t delay) const {
    return in_sequence(stream, t, delay) && t - delay >= -hidden_rows_;
  }
  bool cell(std::int64_t stream, std::int64_t t) const {
    return in_sequence(stream, t, 1) && (t > 0 || cell_rows_ > 0);
  }

 private:
  const std::int32_t* preceding_;
  std::int64_t steps_, hidden_rows_, cell_rows_;
};

/// How a step's work is cut: items of some units of some streams. By shape alone.
struct StepItems {
  std::int64_t width;    ///< units of an item
  std::int64_t columns;  ///< of its packed part of the weight: whole blocks
  std::int64_t across, rows, down;

  /// `matrices` columns for every unit, in whole blocks of columns.
  template <class T>
  static StepItems of(std::int64_t streams, std::int64_t units, std::int64_t matrices) {
    constexpr std::int64_t kShortest = 16, kMostRows = 96;
    std::int64_t width = kBlockColumns<T> / std::gcd(kBlockColumns<T>, matrices);
    while (width < kShortest) width *= 2;
    const std::int64_t down = std::max<std::int64_t>(1, (streams + kMostRows - 1) / kMostRows);
    const std::int64_t rows = ((streams + down - 1) / down + 5) / 6 * 6;
    return {width, width * matrices, (units + width - 1) / width, rows, down};
  }
  /// Items of `width` units without packing.
  static StepItems wide(std::int64_t streams, std::int64_t units, std::int64_t matrices) {
    constexpr std::int64_t kWidth = 64;
    return {kWidth, kWidth * matrices, (units + kWidth - 1) / kWidth, streams, 1};
  }
  std::int64_t count() const { return across * down; }
  /// Elements of an item's results.
  std::int64_t scratch() const { return rows * columns; }
  std::int64_t first_unit(std::int64_t item) const { return item / down * width; }
  std::int64_t first_row(std::int64_t item) const { return item % down * rows; }
};

/// Elements as products read them: rounded to bf16 if the step says so, which f64 never is.
inline float as_operand(float x, bool rounded) { return rounded ? static_cast<float>(bf16(x)) : x; }
inline double as_operand(double x, bool) { return x; }
template <class T>
void round_operands(T* row, std::int64_t count, bool rounded) {
  if (rounded)
    for (std::int64_t i = 0; i < count; ++i) row[i] = as_operand(row[i], true);
}

/// The weight in the layout of multiply_columns, part by part of the items across: `value(item, p, c)` is the element
/// of column c < columns of an item.
template <class T>
class PackedWeight {
 public:
  template <class Value>
  PackedWeight(Step& step, const StepItems& items, std::int64_t depth, Value&& value)
      : columns_(items.columns),
        depth_(depth),
        memory_(step.workspace(static_cast<std::size_t>(items.across * columns_ * depth + kAlign) * sizeof(T))) {
    const std::size_t past = reinterpret_cast<std::uintptr_t>(memory_.data<T>()) % kVectorBytes;
    packed_ = memory_.data<T>() + (past == 0 ? 0 : (kVectorBytes - past) / sizeof(T));
    const std::int64_t blocks = columns_ / kBlockColumns<T>;
    parallel_items(items.across * blocks, [&](std::int64_t block) {
      const std::int64_t item = block / blocks, first = block % blocks * kBlockColumns<T>;
      pack_columns(depth_, packed_ + block * kBlockColumns<T> * depth_,
                   [&](std::int64_t p, std::int64_t c) { return value(item, p, first + c); });
    });
  }
  /// c[rows, columns] = a[rows, depth] times the part of the items at `across`.
  void multiply(std::int64_t across, std::int64_t rows, const T* a, std::int64_t a_stride, T* c) const {
    for (std::int64_t first = 0; first < columns_; first += kBlockColumns<T>)
      multiply_columns(rows, a, a_stride, packed_ + (across * columns_ + first) * depth_, depth_, c + first, columns_);
  }

 private:
  static constexpr std::int64_t kAlign = kVectorBytes / sizeof(T);
  std::int64_t columns_, depth_;
  Workspace memory_;
  T* packed_;
};

/// Two sets of rows that take turns: one step reads what the other wrote.
template <class T>
class OperandRows {
 public:
  OperandRows(Step& step, std::int64_t rows, std::int64_t length)
      : stride_(apart(length)),
        size_(rows * stride_),
        memory_(step.workspace(static_cast<std::size_t>(2 * size_) * sizeof(T))) {}
  std::int64_t stride() const { return stride_; }
  /// Of the product that makes step t.
  T* of_step(std::int64_t t) const { return memory_.template data<T>() + (t & 1) * size_; }

 private:
  std::int64_t stride_, size_;
  Workspace memory_;
};

/// Calls body(unit, count) for whole vectors of units [first, end) and the shorter rest.
template <class T, class Body>
void for_lanes(std::int64_t first, std::int64_t end, Body&& body) {
  constexpr std::int64_t kLanes = sizeof(typename CellLanes<T>::Vector) / sizeof(T);
  for (std::int64_t unit = first; unit < end; unit += kLanes) body(unit, std::min(kLanes, end - unit));
}

}  // namespace engram::cpu
