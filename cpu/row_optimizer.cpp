#include "core/kernels/row_optimizer.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>
#include <type_traits>

#include "cpu/ordered_sum.hpp"
#include "cpu/part_vectors.hpp"
#include "cpu/row_sums.hpp"
#include "cpu/table_row.hpp"

namespace engram::cpu {
namespace {

/// Numbers of a row that row-wise AdaGrad moves before it asks for as many of the next row's: four lines of f32.
constexpr std::int64_t kPiece = 64;

/// The gradients of the step, row by row, in either form.
template <class C>
class GradientReader {
 public:
  GradientReader(const Step& step, const RowGradients& gradients, std::int64_t width) : width_(width) {
    if (!gradients.order) return;
    rows_ = gradients.order.rows.data<const std::int64_t>();
    if (step.computes()) count_ = gradients.order.count.data<const std::int64_t>()[0];
    if (gradients.sums)
      sums_ = gradients.sums.data<const C>();
    else
      summed_.emplace(gradients.uses, gradients.order);
  }
  /// How many rows have a gradient.
  std::int64_t count() const { return count_; }
  /// Ascending.
  const std::int64_t* rows() const { return rows_; }
  /// How many C read() needs.
  std::int64_t scratch() const { return summed_ ? width_ + summed_->scratch() : 0; }
  /// The gradient of row rows()[u].
  const C* read(std::int64_t u, C* scratch) const {
    if (sums_ != nullptr) return sums_ + u * width_;
    summed_->sum(u, scratch, scratch + width_);
    return scratch;
  }

 private:
  std::int64_t width_;
  const std::int64_t* rows_ = nullptr;
  std::int64_t count_ = 0;
  const C* sums_ = nullptr;
  std::optional<RowSums<C>> summed_;
};

/// Scratch memory of every thread.
template <class C>
class ThreadRows {
 public:
  ThreadRows(Step& step, std::int64_t each)
      : each_((each + 15) / 16 * 16),  // threads share no line
        memory_(
            step.workspace(static_cast<std::size_t>(std::max<std::int64_t>(1, each_ * max_threads())) * sizeof(C))) {}
  C* of(int thread) const { return memory_.template data<C>() + thread * each_; }

 private:
  std::int64_t each_;
  Workspace memory_;
};

/// The sum of the squares of scale g[c] over the held columns of a row. One copy of the arithmetic, for a compiler may
/// join products and sums otherwise where it puts another one.
template <class C>
[[gnu::noinline]] double squares_of_row(const C* g, C scale, const TableColumns& columns) {
  double sums[kMostColumnParts];
  const std::int64_t part = columns.part(), parts = columns.parts();
  const auto squares = [scale](const C* numbers, std::int64_t count) {
    return sum_in_lanes(0, count, [numbers, scale](std::int64_t c) {
      const auto value = static_cast<double>(numbers[c] * scale);
      return value * value;
    });
  };
  for (std::int64_t p = 0; p < parts; ++p) {
    const C* const numbers = g + p * part;
    if (part >= kSumLanes) {
      sums[p] = squares(numbers, part);
    } else {  // with zeros behind: what is put together number by number would be waited for
      alignas(kVectorBytes) C padded[kSumLanes];
      for (std::int64_t first = 0; first < kSumLanes; first += kVectorLanes<C>) {
        const PartVector<C> there(std::clamp<std::int64_t>(part - first, 0, kVectorLanes<C>));
        WholeVector<C>().store(there.load(numbers + first), padded + first);
      }
      sums[p] = squares(padded, kSumLanes);
    }
  }
  return sum_of_column_parts(sums, parts);
}

void row_squares(Step& step, const RowGradients& gradients, const Tensor& gradient_scale, TableColumns columns,
                 Tensor& squares) {
  const DType dtype = gradients.sums ? gradients.sums.dtype() : gradients.uses.weights.dtype();
  dispatch_float(dtype, "row_squares", [&]<class C>() {
    const GradientReader<C> reader(step, gradients, columns.count);
    const ThreadRows<C> scratch(step, reader.scratch());
    if (!step.computes()) return;
    const C scale = static_cast<C>(gradient_scale.data<const double>()[0]);
    const std::int64_t chunk = row_chunk(columns.count), count = reader.count();
    double* out = squares.data<double>();
    parallel_items_on_threads((count + chunk - 1) / chunk, [&](std::int64_t item, int thread) {
      for (std::int64_t u = item * chunk; u < std::min(count, (item + 1) * chunk); ++u)
        out[u] = squares_of_row(reader.read(u, scratch.of(thread)), scale, columns);
    });
    std::fill(out + count, out + squares.count(), 0.0);
  });
}

void row_squared_norm(Step& step, const Tensor& squares, Tensor& squared_norm) {
  if (!squares) {
    if (step.computes()) squared_norm.data<double>()[0] = 0;
    return;
  }
  const double* each = squares.data<const double>();
  const std::int64_t count = squares.count(), chunks = (count + kElementChunk - 1) / kElementChunk;
  const Workspace memory = step.workspace(static_cast<std::size_t>(std::max<std::int64_t>(1, chunks)) * sizeof(double));
  if (!step.computes()) return;
  double& norm = squared_norm.data<double>()[0];
  norm = 0;
  double* partial = memory.data<double>();
  parallel_items(chunks, [&](std::int64_t item) {
    partial[item] = sum_in_lanes(item * kElementChunk, std::min(count, (item + 1) * kElementChunk),
                                 [each](std::int64_t u) { return each[u]; });
  });
  for (std::int64_t item = 0; item < chunks; ++item) norm += partial[item];
}

/// Adam on the rows of one table in one step.
template <class T>
class AdamRows {
 public:
  using C = Compute<T>;

  AdamRows(Step& step, const RowGradients& gradients, double gradient_scale, const Tensor& clock,
           const kernels::RowAdamOptions& options, const RandomStream& random, AdamTable& table)
      : AdamRows(options, clock, random, table, step) {
    gradients_.emplace(step, gradients, width_);
    scratch_.emplace(step, gradients_->scratch() + (kRounded ? width_ : 0));
    if (!step.computes()) return;
    rule_.gradient_scale = static_cast<C>(gradient_scale);
    rate_ = options.rate.at(step.scalars()->learning_rate);
    now_ = static_cast<std::int64_t>(step.scalars()->step) + 1;
    move_ = move_at(now_);
    if (options.mode == TableMode::dense) {
      all_rows();
      return;
    }
    if (options.mode == TableMode::deferred) {
      const TableClock::Range due = TableClock::due(rows_, seen_);
      each_row(due.end - due.begin, [&](std::int64_t i, C* scratch) { catch_up(due.begin + i, scratch); });
    }
    touched_rows();
  }
  /// Catching up alone.
  AdamRows(Step& step, const Tensor& ids, const Tensor& clock, const kernels::RowAdamOptions& options,
           const RandomStream& random, AdamTable& table)
      : AdamRows(options, clock, random, table, step) {
    scratch_.emplace(step, kRounded ? width_ : 0);
    if (!step.computes()) return;
    if (!ids) {
      each_row(rows_, [&](std::int64_t row, C* scratch) { catch_up(row, scratch); });
      return;
    }
    const auto* wanted = ids.data<const std::int64_t>();
    each_row(ids.count(), [&](std::int64_t i, C* scratch) {
      // Whoever changes the row's step does the work; others meet the new one and have nothing to do.
      const std::atomic_ref<std::int32_t> at(steps_[wanted[i]]);
      std::int32_t before = at.load(std::memory_order_relaxed);
      if (before >= seen_ || !at.compare_exchange_strong(before, static_cast<std::int32_t>(seen_))) return;
      catch_up_from(wanted[i], before, scratch);
    });
  }

 private:
  static constexpr bool kRounded = std::is_same_v<T, bf16>;

  AdamRows(const kernels::RowAdamOptions& options, const Tensor& clock, const RandomStream& random, AdamTable& table,
           const Step& step)
      : options_(options),
        rows_(table.values.shape()[0]),
        width_(table.values.shape()[-1]),
        p_(table.values.data<T>()),
        m_(table.first_moment.data<C>()),
        v_(table.second_moment.data<C>()),
        steps_(table.steps ? table.steps.data<std::int32_t>() : nullptr),
        clock_(clock ? clock.data<const double>() : nullptr),
        // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a clock that is there has its numbers
        seen_(clock && step.computes() ? static_cast<std::int64_t>(clock_[TableClock::kNow]) : 0),
        layout_(clock ? TableClock::of(options.beta1, options.beta2) : TableClock{}),
        rounding_(random, step.computes() ? step.scalars()->step : 0, table.columns),
        catch_up_rounding_(caught_up(random), static_cast<std::uint64_t>(seen_), table.columns),
        rule_{.gradient_scale = 1,
              .beta1 = static_cast<C>(options.beta1),
              .rest1 = static_cast<C>(1 - options.beta1),
              .beta2 = static_cast<C>(options.beta2),
              .rest2 = static_cast<C>(1 - options.beta2)} {}

  static RandomStream caught_up(RandomStream random) {
    random.operation |= kCatchUpOperation;
    return random;
  }

  /// Calls body(i, scratch of the thread) for 0 <= i < count.
  template <class Body>
  void each_row(std::int64_t count, Body&& body) const {
    const std::int64_t chunk = row_chunk(width_);
    parallel_items_on_threads((count + chunk - 1) / chunk, [&](std::int64_t item, int thread) {
      for (std::int64_t i = item * chunk; i < std::min(count, (item + 1) * chunk); ++i) body(i, scratch_->of(thread));
    });
  }

  void catch_up(std::int64_t row, C* scratch) const {
    const std::int32_t before = steps_[row];
    if (before >= seen_) return;
    steps_[row] = static_cast<std::int32_t>(seen_);
    catch_up_from(row, before, scratch);
  }
  void catch_up_from(std::int64_t row, std::int64_t before, C* scratch) const {
    const RowValues<T> values(p_, row, width_, scratch);
    AdamRow<C>::catch_up(RowCatchUp::of(clock_, layout_, options_.beta1, options_.beta2, before, seen_), width_,
                         values.numbers(), m_ + row * width_, v_ + row * width_);
    values.put(catch_up_rounding_);
  }

  void all_rows() const {
    const std::int64_t* touched = gradients_->rows();
    const std::int64_t chunk = row_chunk(width_);
    parallel_items_on_threads((rows_ + chunk - 1) / chunk, [&](std::int64_t item, int thread) {
      const std::int64_t begin = item * chunk, end = std::min(rows_, begin + chunk);
      std::int64_t u = std::lower_bound(touched, touched + gradients_->count(), begin) - touched;
      for (std::int64_t row = begin; row < end; ++row) {
        const bool has_gradient = u < gradients_->count() && touched[u] == row;
        update(row, has_gradient ? u++ : -1, scratch_->of(thread));
      }
    });
  }
  void touched_rows() const {
    const std::int64_t count = gradients_->count();
    const std::int64_t* touched = gradients_->rows();
    each_row(count, [&](std::int64_t u, C* scratch) {
      const std::int64_t next = touched[std::min(u + 1, count - 1)] * width_;
      update(touched[u], u, scratch, {p_ + next, m_ + next, v_ + next});
    });
  }
  using Next = typename AdamRow<C>::template Next<T>;
  using Move = typename AdamRow<C>::Move;
  /// Of a row whose bias correction is that of step t.
  Move move_at(std::int64_t t) const {
    return {.size = static_cast<C>(adam_step_size(rate_, options_.beta1, options_.beta2, t)),
            .epsilon = static_cast<C>(adam_epsilon(options_.epsilon_at, options_.epsilon, options_.beta2, t)),
            .decay = static_cast<C>(rate_ * options_.weight_decay)};
  }
  /// u: the number of the row's gradient, or -1.
  void update(std::int64_t row, std::int64_t u, C* scratch, const Next& next = {}) const {
    const C* g = u < 0 ? nullptr : gradients_->read(u, scratch);
    const RowValues<T> values(p_, row, width_, scratch + gradients_->scratch());
    C* m = m_ + row * width_;
    C* v = v_ + row * width_;
    Move move = move_;
    if (options_.mode == TableMode::row_step) {
      move = move_at(++steps_[row]);
    } else if (options_.mode == TableMode::deferred) {
      if (const std::int64_t before = steps_[row]; before < seen_)
        AdamRow<C>::catch_up(RowCatchUp::of(clock_, layout_, options_.beta1, options_.beta2, before, seen_), width_,
                             values.numbers(), m, v);
      steps_[row] = static_cast<std::int32_t>(now_);
    }
    rule_.update(g, move, width_, values.numbers(), m, v, next);
    values.put(rounding_);
  }

  kernels::RowAdamOptions options_;
  std::int64_t rows_, width_;
  T* p_;
  C* m_;
  C* v_;
  std::int32_t* steps_;
  const double* clock_;
  std::int64_t seen_;  // the clock's step
  std::int64_t now_ = 0;
  TableClock layout_;
  RowRounding rounding_, catch_up_rounding_;
  AdamRow<C> rule_;
  double rate_ = 0;
  Move move_;  // of the rows that do not count for themselves
  std::optional<GradientReader<C>> gradients_;
  std::optional<ThreadRows<C>> scratch_;
};

void adam_rows(Step& step, const RowGradients& gradients, const Tensor& gradient_scale, const Tensor& clock,
               const kernels::RowAdamOptions& options, RandomStream random, AdamTable& table) {
  dispatch_storage(table.values.dtype(), "adam_rows", [&]<class T>() {
    AdamRows<T>(step, gradients, gradient_scale.data<const double>()[0], clock, options, random, table);
  });
}

void bring_rows_up_to_date(Step& step, const Tensor& ids, const Tensor& clock, const kernels::RowAdamOptions& options,
                           RandomStream random, AdamTable& table) {
  dispatch_storage(table.values.dtype(), "bring_rows_up_to_date",
                   [&]<class T>() { AdamRows<T>(step, ids, clock, options, random, table); });
}

void advance_table_clock(Step& step, const kernels::RowAdamOptions& options, Tensor& clock) {
  const TableClock layout = TableClock::of(options.beta1, options.beta2);
  double* at = clock.data<double>();
  const auto before = static_cast<std::int64_t>(step.scalars()->step), now = before + 1;
  if (static_cast<std::int64_t>(at[TableClock::kNow]) != before) {
    at[TableClock::kBegin] = static_cast<double>(before);
    at[layout.log_decay(before)] = 0;
  }
  const double rate = options.rate.at(step.scalars()->learning_rate);
  at[TableClock::kNow] = static_cast<double>(now);
  at[layout.size_of_step(now)] = adam_step_size(rate, options.beta1, options.beta2, now);
  at[layout.log_decay(now)] = at[layout.log_decay(before)] + std::log1p(-rate * options.weight_decay);
  const double ratio = options.beta2 > 0 ? options.beta1 / std::sqrt(options.beta2) : 0;
  const auto begin = static_cast<std::int64_t>(at[TableClock::kBegin]);
  const std::int64_t known = std::min(layout.terms, now - begin);
  double sum = 0;  // F(t - d, t): one step further back puts a term before the others
  at[layout.recent(0)] = 0;
  for (std::int64_t d = 1; d <= known; ++d) {
    const std::int64_t i = now - d + 1;
    sum = ratio * (at[layout.size_of_step(i)] * layout.decay(at, i, now) + sum);
    at[layout.recent(d)] = sum;
  }
  if (known == layout.terms) at[layout.whole(now - layout.terms)] = sum;
}

void adagrad_rows(Step& step, const RowGradients& gradients, const Tensor& squares, const Tensor& gradient_scale,
                  const kernels::RowAdagradOptions& options, RandomStream random, AdagradTable& table) {
  dispatch_storage(table.values.dtype(), "adagrad_rows", [&]<class T>() {
    using C = Compute<T>;
    constexpr bool kRounded = std::is_same_v<T, bf16>;
    const std::int64_t width = table.values.shape()[-1];
    const GradientReader<C> reader(step, gradients, width);
    const ThreadRows<C> scratch(step, reader.scratch() + (kRounded ? width : 0));
    if (!step.computes()) return;
    const RowRounding rounding(random, step.scalars()->step, table.columns);
    const double rate = options.rate.at(step.scalars()->learning_rate);
    const C scale = static_cast<C>(gradient_scale.data<const double>()[0]);
    const C keep = static_cast<C>(1 - rate * options.weight_decay);
    T* p = table.values.data<T>();
    C* sums = table.row_sum.data<C>();
    const double* given = squares ? squares.data<const double>() : nullptr;
    const std::int64_t chunk = row_chunk(width), count = reader.count();
    parallel_items_on_threads((count + chunk - 1) / chunk, [&](std::int64_t item, int thread) {
      for (std::int64_t u = item * chunk; u < std::min(count, (item + 1) * chunk); ++u) {
        const std::int64_t row = reader.rows()[u];
        const C* g = reader.read(u, scratch.of(thread));
        const RowValues<T> values(p, row, width, scratch.of(thread) + reader.scratch());
        const double of_row = given != nullptr ? given[u] : squares_of_row(g, scale, table.columns);
        sums[row] += static_cast<C>(of_row / static_cast<double>(table.columns.whole));
        const double below = std::sqrt(static_cast<double>(sums[row])) + options.epsilon;
        const C eta = below == 0 ? C(0) : static_cast<C>(rate / below) * scale;
        const T* const next = p + reader.rows()[std::min(u + 1, count - 1)] * width;
        for (std::int64_t begin = 0; begin < width; begin += kPiece) {
          const std::int64_t length = std::min(kPiece, width - begin);
          for (std::int64_t c = 0; c < length; c += 64 / static_cast<std::int64_t>(sizeof(T)))
            __builtin_prefetch(next + begin + c, 1);
          auto numbers = vec(values.numbers() + begin, length);
          numbers = numbers * keep - vec(g + begin, length) * eta;
        }
        values.put(rounding);
      }
    });
  });
}

const bool bound =
    kernels::row_squares.bind(DeviceKind::cpu, &row_squares, KernelMemory::workspace) &&
    kernels::row_squared_norm.bind(DeviceKind::cpu, &row_squared_norm, KernelMemory::workspace) &&
    kernels::adam_rows.bind(DeviceKind::cpu, &adam_rows, KernelMemory::workspace) &&
    kernels::bring_rows_up_to_date.bind(DeviceKind::cpu, &bring_rows_up_to_date, KernelMemory::workspace) &&
    kernels::advance_table_clock.bind(DeviceKind::cpu, &advance_table_clock) &&
    kernels::adagrad_rows.bind(DeviceKind::cpu, &adagrad_rows, KernelMemory::workspace);

}  // namespace
}  // namespace engram::cpu
