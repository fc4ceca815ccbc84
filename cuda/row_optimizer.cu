#include "core/kernels/row_optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "cuda/row_squares.cuh"
#include "cuda/table_row.cuh"

namespace engram::cuda::row_optimizer_kernels {
namespace {

/// What is the same for all rows of a step.
struct StepFactors {
  double rate, step_size, epsilon, decay;
  std::int64_t now;
};
__global__ void step_factors(const StepScalars* scalars, kernels::RowAdamOptions options, StepFactors* factors) {
  const std::int64_t now = static_cast<std::int64_t>(scalars->step) + 1;
  const double rate = factors->rate = options.rate.at(scalars->learning_rate);
  factors->step_size = adam_step_size(rate, options.beta1, options.beta2, now);
  factors->epsilon = adam_epsilon(options.epsilon_at, options.epsilon, options.beta2, now);
  factors->decay = rate * options.weight_decay;
  factors->now = now;
}

/// Adam on the rows of one table.
template <class T>
struct AdamRows {
  using C = Compute<T>;
  GradientRows<C> gradients;
  const double* gradient_scale;
  const StepFactors* factors;
  const double* clock;
  TableClock layout;
  kernels::RowAdamOptions options;
  RandomStream random;
  std::int64_t rows;
  TableColumns columns;
  T* p;
  C* m;
  C* v;
  std::int32_t* steps;

  __device__ std::int64_t seen() const { return static_cast<std::int64_t>(clock[TableClock::kNow]); }
  __device__ RowCatchUp catch_up_from(std::int64_t before) const {
    return RowCatchUp::of(clock, layout, options.beta1, options.beta2, before, seen());
  }

  /// p = keep p - size m / (sqrt(v) + epsilon), and no more than keep p where v is 0.
  template <int kWidth>
  __device__ static void move(C keep, C size, C epsilon, const Pack<C, kWidth>& first, const Pack<C, kWidth>& second,
                              Pack<C, kWidth>& values) {
    for (int j = 0; j < kWidth; ++j) {
      const C step = first.value[j] * size / (std::sqrt(second.value[j]) + epsilon);
      values.value[j] = values.value[j] * keep - (second.value[j] == 0 ? C(0) : step);
    }
  }
  template <int kWidth>
  __device__ static void catch_up(const RowCatchUp& by, Pack<C, kWidth>& first, Pack<C, kWidth>& second,
                                  Pack<C, kWidth>& values) {
    move(static_cast<C>(by.decay), static_cast<C>(by.move), C(0), first, second, values);
    for (int j = 0; j < kWidth; ++j) {
      first.value[j] *= static_cast<C>(by.first);
      second.value[j] *= static_cast<C>(by.second);
    }
  }

  /// By a warp. u: the number of the row's gradient, or -1.
  template <int kWidth>
  __device__ void update(std::int64_t row, std::int64_t u) const {
    const std::int64_t width = gradients.width;
    C step_size = static_cast<C>(factors->step_size), epsilon = static_cast<C>(factors->epsilon);
    RowCatchUp by;
    bool behind = false;
    if (steps != nullptr) {
      const std::int64_t before = steps[row];
      __syncwarp();
      std::int64_t after = factors->now;
      if (options.mode == TableMode::row_step) {
        after = before + 1;
        step_size = static_cast<C>(adam_step_size(factors->rate, options.beta1, options.beta2, after));
        epsilon = static_cast<C>(adam_epsilon(options.epsilon_at, options.epsilon, options.beta2, after));
      } else if (before < seen()) {
        behind = true;
        by = catch_up_from(before);
      }
      if (threadIdx.x == 0) steps[row] = static_cast<std::int32_t>(after);
    }
    const C scale = static_cast<C>(gradient_scale[0]), keep = C(1) - static_cast<C>(factors->decay);
    const C beta1 = static_cast<C>(options.beta1), rest1 = static_cast<C>(1 - options.beta1);
    const C beta2 = static_cast<C>(options.beta2), rest2 = static_cast<C>(1 - options.beta2);
    for (std::int64_t c = threadIdx.x * kWidth; c < width; c += kWarpLanes * kWidth) {
      const std::int64_t at = row * width + c;
      Pack<C, kWidth> values = load<kWidth>(p + at), first = load<kWidth>(m + at), second = load<kWidth>(v + at);
      if (behind) catch_up(by, first, second, values);
      Pack<C, kWidth> g = {};
      if (u >= 0) g = gradients.template at<kWidth>(u, c);
      for (int j = 0; j < kWidth; ++j) {
        const C gradient = g.value[j] * scale;
        first.value[j] = first.value[j] * beta1 + gradient * rest1;
        second.value[j] = second.value[j] * beta2 + gradient * gradient * rest2;
      }
      move(keep, step_size, epsilon, first, second, values);
      store(m + at, first);
      store(v + at, second);
      store_row(p + at, values, random, static_cast<std::uint64_t>(factors->now - 1), row, columns, c);
    }
  }
  /// By a warp: to the clock's step, from step `before`.
  template <int kWidth>
  __device__ void bring_up_to_date(std::int64_t row, std::int64_t before) const {
    const std::int64_t width = gradients.width;
    const RowCatchUp by = catch_up_from(before);
    RandomStream bits = random;
    bits.operation |= kCatchUpOperation;
    for (std::int64_t c = threadIdx.x * kWidth; c < width; c += kWarpLanes * kWidth) {
      const std::int64_t at = row * width + c;
      Pack<C, kWidth> values = load<kWidth>(p + at), first = load<kWidth>(m + at), second = load<kWidth>(v + at);
      catch_up(by, first, second, values);
      store(m + at, first);
      store(v + at, second);
      store_row(p + at, values, bits, static_cast<std::uint64_t>(seen()), row, columns, c);
    }
  }
  /// The same, by the first of all warps that meet the row.
  template <int kWidth>
  __device__ void claim(std::int64_t row) const {
    const std::int64_t now = seen();
    int before = 0;
    if (threadIdx.x == 0) before = atomicMax(steps + row, static_cast<int>(now));
    before = __shfl_sync(kAllLanes, before, 0);
    if (before < now) bring_up_to_date<kWidth>(row, before);
  }
};

template <int kWidth, class T>
__global__ void __launch_bounds__(kWarpLanes* kRowWarps) adam_touched(AdamRows<T> adam) {
  const std::int64_t u = warp_number();
  if (u < adam.gradients.capacity && u < adam.gradients.count[0])
    adam.template update<kWidth>(adam.gradients.rows[u], u);
}
template <int kWidth, class T>
__global__ void __launch_bounds__(kWarpLanes* kRowWarps) adam_all(AdamRows<T> adam) {
  const std::int64_t row = warp_number();
  if (row < adam.rows) adam.template update<kWidth>(row, adam.gradients.find(row));
}
template <int kWidth, class T>
__global__ void __launch_bounds__(kWarpLanes* kRowWarps) catch_up_due(AdamRows<T> adam) {
  const TableClock::Range due = TableClock::due(adam.rows, adam.seen());
  const std::int64_t row = due.begin + warp_number();
  if (row < due.end) adam.template claim<kWidth>(row);
}
template <int kWidth, class T>
__global__ void __launch_bounds__(kWarpLanes* kRowWarps)
    catch_up_rows(AdamRows<T> adam, const std::int64_t* ids, std::int64_t count) {
  const std::int64_t i = warp_number();
  if (i < count) adam.template claim<kWidth>(ids == nullptr ? i : ids[i]);
}

template <class T>
AdamRows<T> adam_of(const Tensor& clock, const kernels::RowAdamOptions& options, const RandomStream& random,
                    const AdamTable& table) {
  using C = Compute<T>;
  return {.gradients = {.width = table.values.shape()[-1]},
          .gradient_scale = nullptr,
          .factors = nullptr,
          .clock = clock ? clock.data<const double>() : nullptr,
          .layout = clock ? TableClock::of(options.beta1, options.beta2) : TableClock{},
          .options = options,
          .random = random,
          .rows = table.values.shape()[0],
          .columns = table.columns,
          .p = table.values.data<T>(),
          .m = table.first_moment.data<C>(),
          .v = table.second_moment.data<C>(),
          .steps = table.steps ? table.steps.data<std::int32_t>() : nullptr};
}

void adam_rows(Step& step, const RowGradients& gradients, const Tensor& gradient_scale, const Tensor& clock,
               const kernels::RowAdamOptions& options, RandomStream random, AdamTable& table) {
  dispatch_storage(table.values.dtype(), "adam_rows", [&]<class T>() {
    using C = Compute<T>;
    AdamRows<T> adam = adam_of<T>(clock, options, random, table);
    const std::int64_t width = adam.gradients.width;
    const Numbers<C> pieces(step, gradient_numbers(gradients));
    const Numbers<StepFactors> factors(step, 1);
    launch(step, {.blocks = 1, .threads = 1}, step_factors, step.scalars(), options, factors.data());
    adam.gradients = read_gradients<C>(step, gradients, width, pieces.data());
    adam.gradient_scale = gradient_scale.data<const double>();
    adam.factors = factors.data();
    const auto start = [&](auto packs) {
      constexpr int kWidth = decltype(packs)::value;
      if (options.mode == TableMode::dense) {
        launch(step, warps_for(adam.rows), &adam_all<kWidth, T>, adam);
        return;
      }
      if (options.mode == TableMode::deferred)
        launch(step, warps_for((adam.rows + TableClock::kPeriod - 1) / TableClock::kPeriod), &catch_up_due<kWidth, T>,
               adam);
      launch(step, warps_for(adam.gradients.capacity), &adam_touched<kWidth, T>, adam);
    };
    if (rows_in_packs<T>(table.columns) && aligned_for_packs(adam.p, adam.m, adam.v) &&
        gradients_in_packs<C, kPackWidth<T>>(gradients, width))
      start(std::integral_constant<int, kPackWidth<T>>{});
    else
      start(std::integral_constant<int, 1>{});
  });
}

void bring_rows_up_to_date(Step& step, const Tensor& ids, const Tensor& clock, const kernels::RowAdamOptions& options,
                           RandomStream random, AdamTable& table) {
  dispatch_storage(table.values.dtype(), "bring_rows_up_to_date", [&]<class T>() {
    const AdamRows<T> adam = adam_of<T>(clock, options, random, table);
    const std::int64_t count = ids ? ids.count() : adam.rows;
    const std::int64_t* wanted = ids ? ids.data<const std::int64_t>() : nullptr;
    if (rows_in_packs<T>(table.columns) && aligned_for_packs(adam.p, adam.m, adam.v))
      launch(step, warps_for(count), &catch_up_rows<kPackWidth<T>, T>, adam, wanted, count);
    else
      launch(step, warps_for(count), &catch_up_rows<1, T>, adam, wanted, count);
  });
}

constexpr int kClockThreads = 256;

__global__ void __launch_bounds__(kClockThreads)
    advance_clock(const StepScalars* scalars, kernels::RowAdamOptions options, TableClock layout, double* at) {
  __shared__ double terms[kClockThreads];
  const std::int64_t before = static_cast<std::int64_t>(scalars->step), now = before + 1;
  if (threadIdx.x == 0) {
    if (static_cast<std::int64_t>(at[TableClock::kNow]) != before) {
      at[TableClock::kBegin] = static_cast<double>(before);
      at[layout.log_decay(before)] = 0;
    }
    const double rate = options.rate.at(scalars->learning_rate);
    at[TableClock::kNow] = static_cast<double>(now);
    at[layout.size_of_step(now)] = adam_step_size(rate, options.beta1, options.beta2, now);
    at[layout.log_decay(now)] = at[layout.log_decay(before)] + std::log1p(-rate * options.weight_decay);
    at[layout.recent(0)] = 0;
  }
  __syncthreads();
  const double ratio = options.beta2 > 0 ? options.beta1 / std::sqrt(options.beta2) : 0;
  const std::int64_t steps = now - static_cast<std::int64_t>(at[TableClock::kBegin]);
  const std::int64_t known = steps < layout.terms ? steps : layout.terms;
  double sum = 0;  // F(t - d, t): one step further back puts a term before the others
  for (std::int64_t first = 1; first <= known; first += kClockThreads) {
    const std::int64_t d = first + threadIdx.x, i = now - d + 1;
    if (d <= known) terms[threadIdx.x] = at[layout.size_of_step(i)] * layout.decay(at, i, now);
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int k = 0; k < kClockThreads && first + k <= known; ++k) {
        sum = ratio * (terms[k] + sum);
        terms[k] = sum;
      }
    }
    __syncthreads();
    if (d <= known) at[layout.recent(d)] = terms[threadIdx.x];
    __syncthreads();
  }
  if (threadIdx.x == 0 && known == layout.terms) at[layout.whole(now - layout.terms)] = sum;
}

void advance_table_clock(Step& step, const kernels::RowAdamOptions& options, Tensor& clock) {
  launch(step, {.blocks = 1, .threads = kClockThreads}, advance_clock, step.scalars(), options,
         TableClock::of(options.beta1, options.beta2), clock.data<double>());
}

template <class T>
struct AdagradRows {
  using C = Compute<T>;
  GradientRows<C> gradients;
  const double* gradient_scale;
  const StepScalars* scalars;
  kernels::RowAdagradOptions options;
  RandomStream random;
  TableColumns columns;
  const double* squares;  // of whole rows, or none
  T* p;
  C* row_sum;

  /// kSquares: the width of accesses for the squares.
  template <int kWidth, int kSquares>
  __device__ void update(std::int64_t u) const {
    const std::int64_t row = gradients.rows[u], width = gradients.width;
    const double rate = options.rate.at(scalars->learning_rate);
    const C scale = static_cast<C>(gradient_scale[0]);
    const double of_row = squares != nullptr ? squares[u] : squares_of_row<kSquares>(gradients, u, scale, columns);
    const C sum = row_sum[row] + static_cast<C>(of_row / static_cast<double>(columns.whole));
    __syncwarp();
    if (threadIdx.x == 0) row_sum[row] = sum;
    const double below = std::sqrt(static_cast<double>(sum)) + options.epsilon;
    const C eta = below == 0 ? C(0) : static_cast<C>(rate / below) * scale;
    const C keep = static_cast<C>(1 - rate * options.weight_decay);
    for (std::int64_t c = threadIdx.x * kWidth; c < width; c += kWarpLanes * kWidth) {
      const Pack<C, kWidth> g = gradients.template at<kWidth>(u, c);
      Pack<C, kWidth> values = load<kWidth>(p + row * width + c);
      for (int j = 0; j < kWidth; ++j) values.value[j] = values.value[j] * keep - g.value[j] * eta;
      store_row(p + row * width + c, values, random, scalars->step, row, columns, c);
    }
  }
};
template <int kWidth, int kSquares, class T>
__global__ void __launch_bounds__(kWarpLanes* kRowWarps) adagrad_touched(AdagradRows<T> adagrad) {
  const std::int64_t u = warp_number();
  if (u < adagrad.gradients.capacity && u < adagrad.gradients.count[0]) adagrad.template update<kWidth, kSquares>(u);
}

void adagrad_rows(Step& step, const RowGradients& gradients, const Tensor& squares, const Tensor& gradient_scale,
                  const kernels::RowAdagradOptions& options, RandomStream random, AdagradTable& table) {
  dispatch_storage(table.values.dtype(), "adagrad_rows", [&]<class T>() {
    using C = Compute<T>;
    const std::int64_t width = table.values.shape()[-1];
    const Numbers<C> pieces(step, gradient_numbers(gradients));
    const AdagradRows<T> adagrad{.gradients = read_gradients<C>(step, gradients, width, pieces.data()),
                                 .gradient_scale = gradient_scale.data<const double>(),
                                 .scalars = step.scalars(),
                                 .options = options,
                                 .random = random,
                                 .columns = table.columns,
                                 .squares = squares ? squares.data<const double>() : nullptr,
                                 .p = table.values.data<T>(),
                                 .row_sum = table.row_sum.data<C>()};
    const LaunchSize size = warps_for(adagrad.gradients.capacity);
    // The squares as row_squares has them: in the same lanes, for the same bits.
    const bool packs = rows_in_packs<T>(table.columns) && aligned_for_packs(adagrad.p) &&
                       gradients_in_packs<C, kPackWidth<T>>(gradients, width);
    const bool square_packs = squares_in_packs<C, kPackWidth<C>>(gradients, table.columns);
    if (packs && square_packs)
      launch(step, size, &adagrad_touched<kPackWidth<T>, kPackWidth<C>, T>, adagrad);
    else if (packs)
      launch(step, size, &adagrad_touched<kPackWidth<T>, 1, T>, adagrad);
    else if (square_packs)
      launch(step, size, &adagrad_touched<1, kPackWidth<C>, T>, adagrad);
    else
      launch(step, size, &adagrad_touched<1, 1, T>, adagrad);
  });
}

const bool bound = kernels::adam_rows.bind(kThisDevice, &adam_rows) &&
                   kernels::bring_rows_up_to_date.bind(kThisDevice, &bring_rows_up_to_date) &&
                   kernels::advance_table_clock.bind(kThisDevice, &advance_table_clock) &&
                   kernels::adagrad_rows.bind(kThisDevice, &adagrad_rows);

}  // namespace
}  // namespace engram::cuda::row_optimizer_kernels
