#pragma once
/// The products of a recurrent layer's steps with its weight: every step's are with the same matrices, which are packed
/// once; items of the work are some units of some streams, so that what follows a product finds it in the cache.

#include <numeric>
#include <optional>

#include "cpu/colliding_rows.hpp"
#include "cpu/packed_columns.hpp"
#include "cpu/parallel.hpp"
#include "cpu/recurrence/recurrence_lanes.hpp"
#include "cpu/rounded_gemm.hpp"

namespace engram::cpu {

/// How products read their operands, and by what.
enum class StepProductKind : std::uint8_t {
  packed,   ///< multiply_pieces; rounded to bf16 beforehand where the step asks for it
  bf16,     ///< the processor's bf16 instructions
  unpacked  ///< gemm(): packing does not pay for a single step
};

template <class T>
StepProductKind product_kind(const Step& step, std::int64_t steps) {
  const bool rounded = std::is_same_v<T, float> && step.products() == ProductPrecision::bf16;
  if (rounded) return multiplies_bf16() ? StepProductKind::bf16 : StepProductKind::packed;
  return steps > 1 ? StepProductKind::packed : StepProductKind::unpacked;
}

/// How a step's work is cut: by shape alone. The columns of an item are `matrices` groups of `width` neighbouring
/// units, and whole strips of kTileRows columns.
struct StepItems {
  std::int64_t width;    ///< units of an item, a power of two
  std::int64_t columns;  ///< width * matrices, whole panels of packed columns
  std::int64_t across, rows, down;

  template <class T>
  static StepItems of(StepProductKind kind, std::int64_t streams, std::int64_t units, std::int64_t matrices) {
    constexpr std::int64_t kMostRows = 96, kUnpackedWidth = 64;
    if (kind == StepProductKind::unpacked)
      return {kUnpackedWidth, kUnpackedWidth * matrices, (units + kUnpackedWidth - 1) / kUnpackedWidth, streams, 1};
    std::int64_t width = kPanelColumns<T> / std::gcd(kPanelColumns<T>, matrices);
    while (width < kTileRows) width *= 2;
    const std::int64_t down = std::max<std::int64_t>(1, (streams + kMostRows - 1) / kMostRows);
    // Pieces of a bf16 product begin at even strips.
    const std::int64_t whole = kind == StepProductKind::bf16 ? 2 * kTileRows : kPanelRows;
    static_assert(kMostRows % (2 * kTileRows) == 0 && kMostRows % kPanelRows == 0);
    const std::int64_t rows = ((streams + down - 1) / down + whole - 1) / whole * whole;
    return {width, width * matrices, (units + width - 1) / width, rows, down};
  }
  std::int64_t count() const { return across * down; }
  std::int64_t strips() const { return columns / kTileRows; }
  std::int64_t first_unit(std::int64_t item) const { return item / down * width; }
  std::int64_t first_row(std::int64_t item) const { return item % down * rows; }
};

/// kTileRows columns of an item in the weight, `count` of them there; the others, of units beyond the last, are zero.
template <class T>
struct WeightStrip {
  const T* first;
  std::int64_t stride;   ///< between stored rows
  Transpose transposed;  ///< whether columns are stored as rows
  std::int64_t count;
};

template <class T>
class StepProducts {
 public:
  /// For rows [streams, depth]; `strip(across, number)` finds a WeightStrip of an item. `multiplies`: false: there will
  /// be no product.
  template <class Strip>
  StepProducts(Step& step, StepProductKind kind, const StepItems& items, std::int64_t streams, std::int64_t depth,
               bool multiplies, Strip&& strip)
      : kind_(kind),
        rounded_(std::is_same_v<T, float> && step.products() == ProductPrecision::bf16),
        items_(items),
        streams_(streams),
        depth_(depth),
        stride_(apart(depth)),
        rows_(step.workspace(static_cast<std::size_t>(2 * streams * stride_) * sizeof(T))),
        results_(step.workspace(static_cast<std::size_t>(max_threads() * items.rows * items.columns) * sizeof(T))),
        strips_(static_cast<std::size_t>(items.across * items.strips()), step.objects()) {
    for (std::int64_t i = 0; i < items.across * items.strips(); ++i)
      strips_[static_cast<std::size_t>(i)] = strip(i / items.strips(), i % items.strips());
    if (!multiplies || kind == StepProductKind::unpacked) return;
    if (kind == StepProductKind::bf16) {
      packed_rows_.emplace(step.memory(), static_cast<std::size_t>(packed_size(streams, depth)) * sizeof(bf16));
      pack_strips(step);
    } else {
      pack_blocks(step);
    }
  }

  /// The row of a stream in the product that makes step t: two sets take turns, so that one step reads what another
  /// wrote.
  T* row(std::int64_t t, std::int64_t stream) const {
    return rows_.template data<T>() + ((t & 1) * streams_ + stream) * stride_;
  }
  void set_zero(std::int64_t t, std::int64_t stream, std::int64_t column, std::int64_t count) const {
    std::fill_n(row(t, stream) + column, count, T(0));
  }
  void set(std::int64_t t, std::int64_t stream, std::int64_t column, std::int64_t count, const T* from) const {
    std::copy_n(from, count, row(t, stream) + column);
    round(row(t, stream) + column, count);
  }
  void set(std::int64_t t, std::int64_t stream, std::int64_t column, std::int64_t count,
           const typename CellLanes<T>::Vector& numbers) const {
    store_lanes(row(t, stream) + column, count, numbers);
    round(row(t, stream) + column, count);
  }

  /// Once all rows of step t are written, before its products.
  void rows_are_ready(std::int64_t t) const {
    if constexpr (std::is_same_v<T, float>)
      if (kind_ == StepProductKind::bf16)
        parallel_items(strips_of(streams_), [&](std::int64_t strip) {
          pack_a(rows_product(t), strip, strip + 1, packed_rows_->template data<bf16>());
        });
  }
  /// Memory of an item's results: [rows, columns].
  T* results(int thread) const { return results_.template data<T>() + thread * items_.rows * items_.columns; }
  /// On the calling thread, into such memory.
  void multiply(std::int64_t item, std::int64_t t, T* results) const {
    const std::int64_t first = items_.first_row(item), rows = std::min(items_.rows, streams_ - first);
    const std::int64_t across = item / items_.down;
    if (rows <= 0) return;
    if (kind_ == StepProductKind::packed) {
      // Places of the inner axis between two stores of sums: a panel's part and the rows' stay in the second cache.
      constexpr std::int64_t kPart = 512;
      const std::int64_t panel = kPanelColumns<T> * depth_;
      const T* const columns = weight_->template data<const T>() + across * items_.columns * depth_;
      for (std::int64_t column = 0; column < items_.columns; column += kPanelColumns<T>) {
        const T* const from = columns + column * depth_;
        // Of this item, or of the one that likely comes next.
        const bool is_last = across + 1 == items_.across && column + kPanelColumns<T> == items_.columns;
        FetchedAhead next(from + panel, is_last ? 0 : panel, rows * panel);
        multiply_pieces<T>({.m = rows,
                            .n = kPanelColumns<T>,
                            .k = depth_,
                            .a = row(t, first),
                            .a_row = stride_,
                            .a_inner = 1,
                            .b = from,
                            .b_stride = kPanelColumns<T>,
                            .c = results + column,
                            .c_stride = items_.columns,
                            .part = kPart,
                            .ahead = &next});
      }
      return;
    }
    if constexpr (std::is_same_v<T, float>)
      if (kind_ == StepProductKind::bf16) {
        Gemm<float> product = rows_product(t);
        product.n = items_.columns;
        product.c = results - first * items_.columns;
        product.c_stride = items_.columns;
        const std::int64_t strip = first / kTileRows;
        return multiply_strips(product, packed_rows_->template data<bf16>(),
                               weight_->template data<bf16>() + across * packed_size(items_.columns, depth_),
                               {strip, strip + strips_of(rows), 0, items_.strips()});
      }
    for (std::int64_t column = 0; column < items_.columns; column += items_.width) {
      const WeightStrip<T>& strip = strips_[static_cast<std::size_t>((across * items_.columns + column) / kTileRows)];
      gemm(Gemm<T>{.transpose_b = strip.transposed,
                   .m = rows,
                   .n = std::min(items_.width, units_beyond(across, column)),
                   .k = depth_,
                   .a = row(t, first),
                   .a_stride = stride_,
                   .b = strip.first,
                   .b_stride = strip.stride,
                   .c = results + column,
                   .c_stride = items_.columns});
    }
  }

 private:
  /// How many columns there are from this one, the first of a group, to the group's last.
  std::int64_t units_beyond(std::int64_t across, std::int64_t column) const {
    std::int64_t count = 0;
    for (std::int64_t strip = 0; strip < items_.width / kTileRows; ++strip)
      count += strips_[static_cast<std::size_t>((across * items_.columns + column) / kTileRows + strip)].count;
    return count;
  }
  void round(T* numbers, std::int64_t count) const {
    if constexpr (std::is_same_v<T, float>)
      if (rounded_ && kind_ == StepProductKind::packed) round_rows(numbers, count, 1, count, numbers, count);
  }
  Gemm<T> rows_product(std::int64_t t) const {
    return {.m = streams_, .k = depth_, .a = row(t, 0), .a_stride = stride_};
  }
  void pack_blocks(Step& step) {
    weight_.emplace(step.memory(), static_cast<std::size_t>(items_.across * items_.columns * depth_) * sizeof(T));
    if (!step.computes()) return;
    parallel_items(items_.across * items_.columns / kPanelColumns<T>, [&](std::int64_t block) {
      T* const to = weight_->template data<T>() + block * kPanelColumns<T> * depth_;
      pack_columns<T>(depth_, to, [&](std::int64_t c) {
        const std::int64_t column = block * kPanelColumns<T> + c;
        const WeightStrip<T>& strip = strips_[static_cast<std::size_t>(column / kTileRows)];
        const std::int64_t inside = column % kTileRows;
        const bool by_row = strip.transposed == Transpose::yes;
        return PackedColumn<T>{inside < strip.count ? strip.first + inside * (by_row ? strip.stride : 1) : nullptr,
                               by_row ? 1 : strip.stride};
      });
      round(to, kPanelColumns<T> * depth_);
    });
  }
  void pack_strips(Step& step) {
    const std::int64_t size = packed_size(kTileRows, depth_);
    weight_.emplace(step.memory(), strips_.size() * static_cast<std::size_t>(size) * sizeof(bf16));
    if (!step.computes()) return;
    if constexpr (std::is_same_v<T, float>)
      parallel_items(static_cast<std::int64_t>(strips_.size()), [&](std::int64_t number) {
        const WeightStrip<T>& strip = strips_[static_cast<std::size_t>(number)];
        bf16* const to = weight_->template data<bf16>() + number * size;
        if (strip.count == 0) return static_cast<void>(std::fill_n(to, size, bf16()));
        pack_b({.transpose_b = strip.transposed,
                .n = strip.count,
                .k = depth_,
                .b = strip.first,
                .b_stride = strip.stride},
               0, 1, to);
      });
  }

  StepProductKind kind_;
  bool rounded_;
  StepItems items_;
  std::int64_t streams_, depth_, stride_;
  Workspace rows_, results_;
  std::optional<Workspace> packed_rows_, weight_;
  std::pmr::vector<WeightStrip<T>> strips_;
};

}  // namespace engram::cpu
