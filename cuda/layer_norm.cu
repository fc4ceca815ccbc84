#include "core/kernels/layer_norm.hpp"

#include "cuda/column_sums.cuh"
#include "cuda/elements.cuh"
#include "cuda/row_team.cuh"

namespace engram::cuda::layer_norm_kernels {
namespace {

template <class T>
struct Forward {
  const T* x;
  const T* residual;  // null: none
  const Compute<T>* gain;
  const Compute<T>* bias;
  Compute<T> epsilon;
  T* sum;  // null exactly when residual is
  T* y;
  Compute<T>* mean;
  Compute<T>* reciprocal_deviation;
  std::int64_t rows, n;
};

template <class T, class Team, int kWidth>
__global__ void __launch_bounds__(Team::kBlockThreads) normalise_rows(Forward<T> f) {
  using C = Compute<T>;
  const std::int64_t row = Team::row(), first = row * f.n;
  if (row >= f.rows) return;
  const C count = static_cast<C>(f.n);
  // Every thread reads back what it wrote itself.
  const T* in = f.residual != nullptr ? f.sum + first : f.x + first;
  C total = 0;
  for_row<Team, kWidth>(f.n, [&](std::int64_t i) {
    Pack<C, kWidth> value = load<kWidth>(f.x + first + i);
    if (f.residual != nullptr) {
      const Pack<C, kWidth> other = load<kWidth>(f.residual + first + i);
      for (int j = 0; j < kWidth; ++j) value.value[j] += other.value[j];
      store(f.sum + first + i, value);
      value = as_stored<T>(value);
    }
    for (int j = 0; j < kWidth; ++j) total += value.value[j];
  });
  const C mean = Team::sum(total) / count;
  // Two passes: the difference of squares would cancel for rows far from zero.
  C squares = 0;
  for_row<Team, kWidth>(f.n, [&](std::int64_t i) {
    const Pack<C, kWidth> value = load<kWidth>(in + i);
    for (int j = 0; j < kWidth; ++j) squares += (value.value[j] - mean) * (value.value[j] - mean);
  });
  const C reciprocal = C(1) / std::sqrt(Team::sum(squares) / count + f.epsilon);
  for_row<Team, kWidth>(f.n, [&](std::int64_t i) {
    Pack<C, kWidth> value = load<kWidth>(in + i);
    const Pack<C, kWidth> factor = load<kWidth>(f.gain + i), offset = load<kWidth>(f.bias + i);
    for (int j = 0; j < kWidth; ++j)
      value.value[j] = (value.value[j] - mean) * reciprocal * factor.value[j] + offset.value[j];
    store(f.y + first + i, value);
  });
  if (Team::rank() != 0) return;
  f.mean[row] = mean;
  f.reciprocal_deviation[row] = reciprocal;
}

void layer_norm_forward(Step& step, const Tensor& x, const Tensor& residual, const Tensor& gain, const Tensor& bias,
                        double epsilon, Tensor& sum, Tensor& y, Tensor& mean, Tensor& reciprocal_deviation) {
  dispatch_storage(x.dtype(), "layer_norm", [&]<class T>() {
    using C = Compute<T>;
    const Forward<T> f{.x = x.data<const T>(),
                       .residual = residual ? residual.data<const T>() : nullptr,
                       .gain = gain.data<const C>(),
                       .bias = bias.data<const C>(),
                       .epsilon = static_cast<C>(epsilon),
                       .sum = residual ? sum.data<T>() : nullptr,
                       .y = y.data<T>(),
                       .mean = mean.data<C>(),
                       .reciprocal_deviation = reciprocal_deviation.data<C>(),
                       .rows = x.shape().rows(),
                       .n = x.shape()[-1]};
    with_row_team<T>(
        f.n, aligned_for_packs(f.x, f.residual, f.gain, f.bias, f.sum, f.y),
        [&]<class Team, int kWidth>() { launch(step, row_launch<Team>(f.rows), normalise_rows<T, Team, kWidth>, f); });
  });
}

template <class T>
struct Backward {
  const T* in;
  const Compute<T>* gain;
  const Compute<T>* mean;
  const Compute<T>* reciprocal_deviation;
  const T* dy;
  const T* direct;  // the gradient that reaches the sum directly; null: none
  TargetElements<T> dx;
  std::int64_t rows, n;
};

template <class T, class Team, int kWidth>
__global__ void __launch_bounds__(Team::kBlockThreads) row_gradients(Backward<T> b) {
  using C = Compute<T>;
  const std::int64_t row = Team::row(), first = row * b.n;
  if (row >= b.rows) return;
  const C mean = b.mean[row], reciprocal = b.reciprocal_deviation[row];
  C sum_g = 0, sum_gs = 0;
  for_row<Team, kWidth>(b.n, [&](std::int64_t i) {
    const Pack<C, kWidth> in = load<kWidth>(b.in + first + i), dy = load<kWidth>(b.dy + first + i);
    const Pack<C, kWidth> gain = load<kWidth>(b.gain + i);
    for (int j = 0; j < kWidth; ++j) {
      const C g = dy.value[j] * gain.value[j];
      sum_g += g;
      sum_gs += g * ((in.value[j] - mean) * reciprocal);
    }
  });
  const C mean_g = Team::sum(sum_g) / static_cast<C>(b.n), mean_gs = Team::sum(sum_gs) / static_cast<C>(b.n);
  for_row<Team, kWidth>(b.n, [&](std::int64_t i) {
    const Pack<C, kWidth> in = load<kWidth>(b.in + first + i), dy = load<kWidth>(b.dy + first + i);
    const Pack<C, kWidth> gain = load<kWidth>(b.gain + i);
    Pack<C, kWidth> out;
    for (int j = 0; j < kWidth; ++j)
      out.value[j] = (dy.value[j] * gain.value[j] - mean_g - (in.value[j] - mean) * reciprocal * mean_gs) * reciprocal;
    if (b.direct != nullptr) {
      const Pack<C, kWidth> more = load<kWidth>(b.direct + first + i);
      for (int j = 0; j < kWidth; ++j) out.value[j] += more.value[j];
    }
    write_pack(b.dx, first + i, out);
  });
}

/// Of the gain and of the bias.
template <class T>
struct ParameterTerms {
  static constexpr int kSums = 2;
  Backward<T> b;

  template <int kWidth>
  __device__ void add(std::int64_t row, std::int64_t column, Compute<T> (&sums)[kSums][kWidth]) const {
    const std::int64_t first = row * b.n + column;
    const Pack<Compute<T>, kWidth> dy = load<kWidth>(b.dy + first), in = load<kWidth>(b.in + first);
    const Compute<T> mean = b.mean[row], reciprocal = b.reciprocal_deviation[row];
    for (int j = 0; j < kWidth; ++j) {
      sums[0][j] += dy.value[j] * ((in.value[j] - mean) * reciprocal);
      sums[1][j] += dy.value[j];
    }
  }
};

void layer_norm_backward(Step& step, const Tensor& sum, const Tensor& gain, const Tensor& mean,
                         const Tensor& reciprocal_deviation, const Tensor& dy, const Tensor& dsum_in, const Target& dx,
                         const Target& dgain, const Target& dbias) {
  dispatch_storage(sum.dtype(), "layer_norm", [&]<class T>() {
    using C = Compute<T>;
    const Backward<T> b{.in = sum.data<const T>(),
                        .gain = gain.data<const C>(),
                        .mean = mean.data<const C>(),
                        .reciprocal_deviation = reciprocal_deviation.data<const C>(),
                        .dy = dy.data<const T>(),
                        .direct = dsum_in ? dsum_in.data<const T>() : nullptr,
                        .dx = dx,
                        .rows = sum.shape().rows(),
                        .n = sum.shape()[-1]};
    if (dx)
      with_row_team<T>(b.n, aligned_for_packs(b.in, b.gain, b.dy, b.direct, b.dx.data), [&]<class Team, int kWidth>() {
        launch(step, row_launch<Team>(b.rows), row_gradients<T, Team, kWidth>, b);
      });
    if (dgain || dbias)
      column_sums<T, C>(step, aligned_for_packs(b.in, b.dy), b.rows, b.n, ParameterTerms<T>{b}, {dgain, dbias});
  });
}

const bool bound = kernels::layer_norm_forward.bind(kThisDevice, &layer_norm_forward) &&
                   kernels::layer_norm_backward.bind(kThisDevice, &layer_norm_backward);

}  // namespace
}  // namespace engram::cuda::layer_norm_kernels
